// SPDX-License-Identifier: MIT

// The peer of `weir bench table`: golang.org/x/time/rate behind 256 maps, each with a mutex, as Go services limit by key.
// It is measured in the same way: keys of the same number, length and distribution, stored one after the other, the
// same limit, including the reading of the clock; the median of the rounds counts.
package main

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const shards = 256

type shard struct {
	sync.Mutex
	limiters map[string]*rate.Limiter
	_        [40]byte // fills a cache line
}

type table struct {
	seed   maphash.Seed
	shards [shards]shard
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].limiters = make(map[string]*rate.Limiter)
	}
	return t
}

// allow decides as most services do: finds or makes the limiter under the shard's lock, and calls it without the lock.
func (t *table) allow(key string) bool {
	s := &t.shards[maphash.String(t.seed, key)%shards]
	s.Lock()
	limiter := s.limiters[key]
	if limiter == nil {
		limiter = rate.NewLimiter(1000, 100)
		s.limiters[key] = limiter
	}
	s.Unlock()
	return limiter.Allow()
}

// keyText does the same as wr_key_stream_key of src/cli/bench/key_stream.c.
func keyText(number uint64, to []byte) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	const prefix = "tenant:user:"
	digits := len(to)
	if digits > 7 {
		digits = 7
	}
	rest := number * 2654435761
	for i := range to {
		if i < len(to)-digits {
			to[i] = prefix[i%len(prefix)]
		} else {
			to[i] = letters[rest%32]
			rest >>= 5
		}
	}
}

// zipf draws 1 … keys with exponent 1 by rejection-inversion, which math/rand does not support (its exponent must be above 1).
func zipf(random *rand.Rand, keys int) uint64 {
	low, high, sure := math.Log(1.5)-1, math.Log(float64(keys)+0.5), 2-math.Exp(math.Log(2.5)-0.5)
	for {
		u := high + random.Float64()*(low-high)
		x := math.Exp(u)
		k := math.Min(math.Max(math.Floor(x+0.5), 1), float64(keys))
		if k-x <= sure || u >= math.Log(k+0.5)-1/k {
			return uint64(k)
		}
	}
}

func draw(ops, keys, keyLength int, dist string, seed int64) string {
	random := rand.New(rand.NewSource(seed))
	texts := make([]byte, ops*keyLength)
	for i := 0; i < ops; i++ {
		number := uint64(0)
		switch dist {
		case "uniform":
			number = uint64(random.Intn(keys))
		case "zipf":
			number = zipf(random, keys) * 2654435761 % uint64(keys)
		}
		keyText(number, texts[i*keyLength:(i+1)*keyLength])
	}
	return string(texts)
}

func residentBytes() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	var all, resident float64
	text, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(string(text), &all, &resident)
	return resident * float64(os.Getpagesize())
}

// pass runs one round and returns nanoseconds per decision of all threads together.
func pass(t *table, streams []string, keyLength int) float64 {
	var all sync.WaitGroup
	ops := len(streams[0]) / keyLength
	start := time.Now()
	for _, stream := range streams {
		all.Add(1)
		go func(stream string) {
			defer all.Done()
			for i := 0; i < len(stream); i += keyLength {
				t.allow(stream[i : i+keyLength])
			}
		}(stream)
	}
	all.Wait()
	return float64(time.Since(start)) / float64(ops*len(streams))
}

func main() {
	keys := flag.Int("keys", 1000000, "keys in the table")
	keyLength := flag.Int("key-length", 24, "bytes of each key")
	dist := flag.String("dist", "uniform", "one, uniform or zipf")
	threads := flag.Int("threads", 1, "threads that ask at the same time")
	ops := flag.Int("ops", 4000000, "decisions per thread and round")
	seconds := flag.Int("seconds", 5, "add rounds until so much time has passed")
	flag.Bool("json", true, "print JSON, which it always does")
	flag.Parse()

	before := residentBytes()
	t := newTable()
	text := make([]byte, *keyLength)
	for i := 0; i < *keys; i++ {
		keyText(uint64(i), text)
		t.allow(string(text))
	}
	bytesPerKey := (residentBytes() - before) / float64(*keys)

	streams := make([]string, *threads)
	for i := range streams {
		streams[i] = draw(*ops, *keys, *keyLength, *dist, int64(i+1))
	}
	var rounds []float64
	for start := time.Now(); len(rounds) < 3 || time.Since(start) < time.Duration(*seconds)*time.Second; {
		rounds = append(rounds, pass(t, streams, *keyLength))
	}
	sort.Float64s(rounds)
	median := (rounds[(len(rounds)-1)/2] + rounds[len(rounds)/2]) / 2
	fmt.Printf("{\"keys\": %d, \"key_length\": %d, \"dist\": %q, \"threads\": %d, \"rounds\": %d, \"ns_per_decision\": %.2f, "+
		"\"decisions_per_second\": %.0f, \"bytes_per_key\": %.1f}\n",
		*keys, *keyLength, *dist, *threads, len(rounds), median, 1e9/median, bytesPerKey)
}
