// SPDX-License-Identifier: MIT
// figures.js - numbers, durations and instants as people read them.

const THIN = '\u202f';
const NONE = '–';

const known = n => typeof n === 'number' && Number.isFinite(n);

function grouped(text) {
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

export function count(n) {
  if (!known(n)) return NONE;
  if (n < 1e6) return grouped(String(Math.round(n)));
  const [size, unit] = n < 1e9 ? [1e6, 'M'] : n < 1e12 ? [1e9, 'G'] : [1e12, 'T'];
  return parseFloat((n / size).toPrecision(4)) + THIN + unit;
}

// Three digits that mean something.
export function digits(n) {
  if (!known(n)) return NONE;
  if (n >= 1000) return count(n);
  if (n >= 100) return n.toFixed(0);
  if (n >= 10) return n.toFixed(1);
  if (n === 0) return '0';
  if (n >= 0.01) return n.toFixed(2);
  return n.toPrecision(1);
}

// The same without zeros at the end: for what does not move.
export const plain = n => known(n) ? n >= 1000 ? count(n) : String(parseFloat(n.toPrecision(3))) : NONE;

export const rate = n => known(n) ? digits(n) + '/s' : NONE;

export function limit(n) {
  return known(n) ? plain(n) + '/s' : 'no limit';
}

export function bytes(n) {
  if (!known(n)) return NONE;
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return (i === 0 ? String(Math.round(n)) : digits(n)) + THIN + units[i];
}

export function duration(ms) {
  if (!known(ms)) return NONE;
  if (ms < 1) return ms === 0 ? '0' : '<1' + THIN + 'ms';
  if (ms < 1000) return Math.round(ms) + THIN + 'ms';
  if (ms < 60e3) return (ms / 1000).toFixed(ms < 10e3 ? 1 : 0) + THIN + 's';
  const parts = ms < 3600e3 ? [ms / 60e3, 'min', (ms % 60e3) / 1e3, 's']
    : ms < 86400e3 ? [ms / 3600e3, 'h', (ms % 3600e3) / 60e3, 'min'] : [ms / 86400e3, 'd', (ms % 86400e3) / 3600e3, 'h'];
  const small = Math.floor(parts[2]);
  return Math.floor(parts[0]) + THIN + parts[1] + (small ? ' ' + small + THIN + parts[3] : '');
}

export function percent(part, whole) {
  if (!known(part) || !known(whole) || whole <= 0) return NONE;
  const share = 100 * part / whole;
  const shown = share > 0 && share < 10 ? share.toFixed(1) : share.toFixed(0);
  return (share < 100 && shown === '100' ? '99' : shown) + THIN + '%'; // what is not all is not all of it
}

const two = n => String(n).padStart(2, '0');

export function clock(ms) {
  if (!known(ms)) return NONE;
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function day(ms) {
  if (!known(ms)) return NONE;
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

export function ago(ms) {
  return !known(ms) ? NONE : ms < 1000 ? 'just now' : duration(Math.round(ms / 1000) * 1000) + ' ago';
}

// The words for waiting are weir's own, everywhere; here they get a sentence.
export const REASONS = {
  none: ['nothing', 'may start at any moment'],
  pace: ['pace', 'the spacing between two requests'],
  tokens: ['tokens', 'a bucket or window is used up'],
  robots_delay: ['robots_delay', 'Crawl-delay of robots.txt'],
  retry_after: ['retry_after', 'the server asked to wait'],
  rate_limit_reset: ['rate_limit_reset', 'the server’s quota is used up'],
  breaker: ['breaker', 'the circuit breaker is open'],
  concurrency: ['concurrency', 'the limit in flight is reached'],
  robots: ['robots', 'robots.txt is not known yet'],
  retry: ['retry', 'backing off after a failure'],
  job_limit: ['job_limit', 'a limit of the job'],
  paused: ['paused', 'the host is paused'],
  global: ['global', 'a limit on all hosts together'],
  share: ['share', 'another process has its turn'],
  queue: ['queue', 'other requests are ahead in the queue'],
};
