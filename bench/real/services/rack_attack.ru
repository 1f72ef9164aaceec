# SPDX-License-Identifier: MIT
# RACK_ATTACK is "throttle LIMIT PERIOD [fields]" or "ban MAXRETRY FINDTIME BANTIME".
require 'rack/attack'

# A cache store in memory, with the operations that Rack::Attack uses.
class Memory
  def initialize
    @lock = Mutex.new
    @cells = {}
  end

  def read(key)
    @lock.synchronize { cell(key)&.first }
  end

  def write(key, value, options = {})
    @lock.synchronize { @cells[key] = [value, now + (options[:expires_in] || 86_400)] }
    true
  end

  def increment(key, amount, options = {})
    @lock.synchronize do
      value, end_at = cell(key) || [0, now + (options[:expires_in] || 86_400)]
      @cells[key] = [value + amount, end_at]
      value + amount
    end
  end

  def delete(key)
    @lock.synchronize { @cells.delete(key) }
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def cell(key)
    found = @cells[key]
    found if found && found.last > now
  end
end

kind, *words = ENV.fetch('RACK_ATTACK').split
latency = ENV.fetch('LATENCY_MS').to_i / 1000.0
Rack::Attack.cache.store = Memory.new
if kind == 'throttle'
  Rack::Attack.throttle('client', limit: words[0].to_i, period: words[1].to_i, &:ip)
  Rack::Attack.throttled_response_retry_after_header = words[2] == 'fields'
else
  Rack::Attack.blocklist('client') do |request|
    Rack::Attack::Allow2Ban.filter(request.ip, maxretry: words[0].to_i, findtime: words[1].to_i, bantime: words[2].to_i) { true }
  end
end

use Rack::Attack
run(lambda do |_env|
  sleep latency
  [200, { 'Content-Type' => 'text/html' }, ["<p>served</p>\n"]]
end)
