// Package id makes the identifiers of records that clients see: 26 characters of Crockford base 32. They hold 48 bits
// of time in milliseconds and 80 random bits (the ULID layout), so that they sort by creation and cannot be guessed.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Len is the length of an identifier in bytes.
const Len = 26

// New returns a fresh identifier stamped with now.
func New(now time.Time) string {
	b := stamp(now)
	if next := repeated.Load(); next != nil {
		random := (*next)()
		copy(b[6:], random[:])
	} else {
		rand.Read(b[6:]) // crypto/rand.Read never fails
	}
	return Encode(b)
}

// repeated is set by Repeat; nil: identifiers cannot be guessed.
var repeated atomic.Pointer[func() [10]byte]

// Repeat makes New take its random bits from read, until end is called or Repeat is called again. Such identifiers can
// be guessed. It is only for demonstration data, which is the same for the same seed, in a process that does nothing
// else.
func Repeat(read func(b []byte)) (end func()) {
	var turn sync.Mutex
	repeated.Store(new(func() (random [10]byte) {
		turn.Lock()
		defer turn.Unlock()
		read(random[:])
		return random
	}))
	return func() { repeated.Store(nil) }
}

// Of returns the identifier stamped with t that the texts always yield. Anyone who knows the texts can guess it.
func Of(t time.Time, texts ...string) string {
	b, h := stamp(t), sha256.New()
	for _, s := range texts {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	copy(b[6:], h.Sum(nil))
	return Encode(b)
}

// stamp returns the bits of an instant, followed by zero bits.
func stamp(t time.Time) (b [16]byte) {
	ms := uint64(max(t.UnixMilli(), 0)) // no identifier is older than 1970
	for i := 5; i >= 0; i-- {
		b[i] = byte(ms)
		ms >>= 8
	}
	return b
}

// Before returns a text less than every identifier made at or after t, and greater than every earlier one. So rows of
// an age are a range of ids. The resolution is a millisecond. No identifier is older than 1970, so an earlier t sorts
// before all of them.
func Before(t time.Time) string {
	return Encode(stamp(t))
}

// Millis returns the instant of an identifier, in milliseconds since 1970; 0 for any other text.
func Millis(id string) (ms int64) {
	const digits = 10 // they hold the 48 bits of time
	if len(id) != Len {
		return 0
	}
	for i := range digits {
		ms = ms<<5 | int64(strings.IndexByte(alphabet, id[i]))
	}
	return max(ms, 0)
}

// Encode writes 128 bits as an identifier.
func Encode(b [16]byte) string {
	var out [Len]byte
	// 130 bits of output: two leading zero bits, then the 128 bits.
	var acc uint64
	bits, n := 2, 0
	for _, c := range b {
		acc = acc<<8 | uint64(c)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out[n] = alphabet[acc>>bits&31]
			n++
		}
	}
	return string(out[:])
}
