package password

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/crypto/argon2"
)

// RFC 9106, section 5.3.
func TestDeriveKnowsTheVectorOfTheRFC(t *testing.T) {
	var a arena
	tag := a.derive(bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16), bytes.Repeat([]byte{3}, 8),
		bytes.Repeat([]byte{4}, 12),
		Params{MemoryKiB: 32, Passes: 3, Lanes: 4}, 32)
	const want = "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659"
	if got := hex.EncodeToString(tag); got != want {
		t.Errorf("tag %s, want %s", got, want)
	}
}

// One arena serves hashes of all sizes in any order, with the results of the usual package: no hash affects a later
// one.
func TestDeriveMatchesXCrypto(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var a arena
	for range 60 {
		p := Params{Passes: 1 + r.Uint32N(3), Lanes: uint8(1 + r.Uint32N(4))}
		p.MemoryKiB = 8*uint32(p.Lanes) + r.Uint32N(700)
		n := 4 + r.Uint32N(200)
		password, salt := text(r.IntN(140)), text(8+r.IntN(20))
		want := argon2.IDKey(password, salt, p.Passes, p.MemoryKiB, p.Lanes, n)
		if got := a.derive(password, salt, nil, nil, p, n); !bytes.Equal(got, want) {
			t.Fatalf("%+v, tag of %d: %x, want %x", p, n, got, want)
		}
	}
	want := argon2.IDKey([]byte("şifre"), []byte("0123456789abcdef"), 2, 19*1024, 1, 32)
	if got := a.derive([]byte("şifre"), []byte("0123456789abcdef"), nil, nil, DefaultParams(), 32); !bytes.Equal(got,
		want) {
		t.Errorf("default parameters: %x, want %x", got, want)
	}
}

// The memory is allocated once: a hash allocates almost nothing.
func TestDeriveReusesItsMemory(t *testing.T) {
	var a arena
	p := Params{MemoryKiB: 4096, Passes: 1, Lanes: 1}
	run := func() { a.derive([]byte("password"), []byte("0123456789abcdef"), nil, nil, p, 32) }
	run()
	if n := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			run()
		}
	}).AllocedBytesPerOp(); n > 32<<10 {
		t.Errorf("a hash over 4 MiB allocates %d bytes", n)
	}
}

func BenchmarkDerive(b *testing.B) {
	p := DefaultParams()
	password, salt := []byte("correct horse battery staple"), []byte("0123456789abcdef")
	b.Run(fmt.Sprintf("reused-m%d-t%d", p.MemoryKiB, p.Passes), func(b *testing.B) {
		var a arena
		for b.Loop() {
			a.derive(password, salt, nil, nil, p, tagBytes)
		}
	})
	b.Run("x-crypto", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey(password, salt, p.Passes, p.MemoryKiB, p.Lanes, tagBytes)
		}
	})
}
