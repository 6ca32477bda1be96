package demo

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
)

// source is the random source of one record: the same for the same seed, whatever other records were created. Nothing
// here is calculated with floats, whose last digits depend on the processor.
type source struct{ *rand.Rand }

// sourceOf returns the source of the n-th record of a sort.
func sourceOf(seed uint64, sort string, n int) source {
	h := fnv.New64a()
	h.Write([]byte(sort))
	return source{rand.New(rand.NewPCG(seed^h.Sum64(), uint64(n)))}
}

// id returns a record's identifier that begins with an instant, as id.New creates it.
func (s source) id(at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16|s.Uint64()>>48)
	binary.BigEndian.PutUint64(b[8:], s.Uint64())
	return id.Encode(b)
}

// key returns the key of a file, in the form of blob.NewKey.
func (s source) key(area, ext string, at time.Time) string {
	name := s.id(at)
	return path.Join(area, name[id.Len-2:], name[id.Len-4:id.Len-2], name+ext)
}

// bytes returns n random bytes.
func (s source) bytes(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.BigEndian.AppendUint64(b, s.Uint64())
	}
	return b[:n]
}

func (s source) hex(n int) string { return hex.EncodeToString(s.bytes(n)) }

// number returns a number with that many digits, the first of which is not 0.
func (s source) number(digits int) string {
	b := make([]byte, digits)
	for i := range b {
		b[i] = byte('0' + s.IntN(10))
	}
	b[0] = byte('1' + s.IntN(9))
	return string(b)
}

// between returns an instant of whole milliseconds from a until before b.
func (s source) between(a, b time.Time) time.Time {
	return a.Add(time.Duration(s.Int64N(max(b.Sub(a).Milliseconds(), 1))) * time.Millisecond)
}

// chance is true in n of a hundred cases.
func (s source) chance(n int) bool { return s.IntN(100) < n }

func pick[T any](s source, of []T) T { return of[s.IntN(len(of))] }

// sums are typical amounts of a movement, in cents of a dollar.
var sums = []int64{2_000, 5_000, 10_000, 10_000, 25_000, 50_000, 50_000, 100_000, 250_000, 1_000_000}

// worth returns an amount of an asset with a typical value.
func (s source) worth(a asset) amount.Amount {
	cents := pick(s, sums) * int64(50+s.IntN(100)) / 100
	return quantity(a, cents)
}

// quantity returns how much of an asset so many cents buy, to at most 6 decimals.
func quantity(a asset, cents int64) amount.Amount {
	const micro = 1_000_000
	decimals := min(a.decimals, 6)
	n := max(cents*micro/a.cents, 1) // in parts of 10⁻⁶
	whole, parts := n/micro, n%micro
	unit := int64(amount.Unit(decimals)) / 1_000_000_000_000 // of the asset, in parts of 10⁻⁶
	parts -= parts % unit
	if whole == 0 && parts == 0 {
		parts = unit
	}
	return value(amount.Of(whole, parts*1_000_000_000_000))
}
