package argon2id

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
)

var defaults = Params{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1} // of the service

// variants are those that this machine can run. chosen is the fastest of them.
func variants() (all []variant) {
	for v := plainGo; v <= chosen; v++ {
		all = append(all, v)
	}
	return all
}

// RFC 9106, sections 5.2 and 5.3.
func TestVectorsOfTheRFC(t *testing.T) {
	password, salt := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 16)
	secret, data := bytes.Repeat([]byte{3}, 8), bytes.Repeat([]byte{4}, 12)
	p := Params{MemoryKiB: 32, Passes: 3, Lanes: 4}
	for mode, want := range map[uint32]string{
		modeI:  "c814d9d1dc7f37aa13f0d77f2494bda1c8de6b016dd388d29952a4c4672b6ce8",
		modeID: "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659",
	} {
		for _, v := range variants() {
			m := Memory{with: v}
			if got := hex.EncodeToString(m.derive(mode, password, salt, secret, data, p, 32)); got != want {
				t.Errorf("mode %d, %v: tag %s, want %s", mode, v, got, want)
			}
			m.Free()
		}
	}
}

// input is a hash to compute.
type input struct {
	mode           uint32
	p              Params
	password, salt []byte
	n              uint32
}

// random returns an input; kib bounds its memory.
func random(r *rand.Rand, kib uint32) input {
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	in := input{mode: modeI + r.Uint32N(2), p: Params{Passes: 1 + r.Uint32N(4), Lanes: uint8(1 + r.Uint32N(4))},
		password: text(r.IntN(140)), salt: text(8 + r.IntN(20)), n: 4 + r.Uint32N(200)}
	in.p.MemoryKiB = 8*uint32(in.p.Lanes) + r.Uint32N(kib)
	return in
}

// compare compares all variants with the usual package. Each has one memory for hashes of all sizes in any order: no
// hash affects a later one.
func compare(t *testing.T, with map[variant]*Memory, in input) {
	t.Helper()
	usual := argon2.IDKey
	if in.mode == modeI {
		usual = argon2.Key
	}
	want := usual(in.password, in.salt, in.p.Passes, in.p.MemoryKiB, in.p.Lanes, in.n)
	for _, v := range variants() {
		if with[v] == nil {
			with[v] = &Memory{with: v}
		}
		got := with[v].derive(in.mode, in.password, in.salt, nil, nil, in.p, in.n)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v, mode %d, %+v, tag of %d: %x, want %x", v, in.mode, in.p, in.n, got, want)
		}
		if *with[v].scratch != (scratch{}) {
			t.Fatalf("%v, %+v: the scratch memory holds intermediate results", v, in.p)
		}
	}
}

func TestDeriveMatchesXCrypto(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	with := map[variant]*Memory{}
	for i := range comparisons {
		kib := uint32(120)
		switch {
		case i%250 == 0:
			kib = 8 << 10
		case i%10 == 0:
			kib = 1 << 10
		}
		compare(t, with, random(r, kib))
	}
	for lanes := range uint8(2) {
		compare(t, with, input{modeID, Params{64 << 10, 1, 1 + 3*lanes}, []byte("şifre"), []byte("0123456789abcdef"), 32})
	}
	compare(t, with, input{modeID, defaults, []byte("şifre"), []byte("0123456789abcdef"), 32})
	for _, m := range with {
		m.Free()
	}
}

func FuzzDerive(f *testing.F) {
	f.Add(uint64(1), uint32(64), uint32(1), uint8(1), []byte("password"))
	f.Add(uint64(2), uint32(99), uint32(3), uint8(4), []byte(nil))
	f.Fuzz(func(t *testing.T, seed uint64, kib, passes uint32, lanes uint8, password []byte) {
		in := random(rand.New(rand.NewPCG(seed, 0)), 1)
		in.p = Params{Passes: 1 + passes%5, Lanes: 1 + lanes%8}
		in.p.MemoryKiB, in.password = 8*uint32(in.p.Lanes)+kib%2048, password
		with := map[variant]*Memory{}
		compare(t, with, in)
		for _, m := range with {
			m.Free()
		}
	})
}

// A variant compresses a block like the code in Go, and returns the same reference for the next block.
func TestCompressMatchesGo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	fill := func(b *block) {
		for i := range b {
			b[i] = r.Uint64()
		}
	}
	fetched := &Memory{}
	fetched.grow(64)
	var x, y, old, want, got block
	for _, v := range variants()[1:] {
		f := filler{with: v, scratch: new(scratch), ahead: ahead{memory: &fetched.blocks[0]}}
		for i := range 100_000 {
			fill(&x)
			fill(&y)
			fill(&old)
			if i%16 == 0 { // values at which a carry or a sign would be wrong
				x[r.IntN(blockWords)], y[r.IntN(blockWords)] = 0, 1<<63|1<<31
			}
			f.ahead.known, f.ahead.area, f.ahead.length = r.Uint32N(64), r.Uint32()>>r.IntN(32), 1<<31
			f.ahead.last = f.ahead.area + r.Uint32()>>1
			if i%8 == 0 {
				f.ahead.area = 0
			}
			keep := i%2 == 0
			got, want = old, old
			compress(&want, &x, &y, keep, &block{})
			next := f.compress(&got, &x, &y, keep)
			if got != want {
				t.Fatalf("%v, block %d, keep %v: got %x, want %x", v, i, keep, got, want)
			}
			if w := f.ahead.reference(uint32(want[0])); next != w {
				t.Fatalf("%v, block %d: the next reference is %d, want %d of %+v", v, i, next, w, f.ahead)
			}
		}
	}
}

// selection is the variant that GODEBUG leaves in a process of this test.
const selection = "TEST_ARGON2ID_VARIANT"

// best returns the best variant by the list of the kernel. known is false elsewhere, and where GODEBUG leaves some out.
func best() (v variant, known bool) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" || strings.Contains(os.Getenv("GODEBUG"), "cpu.") {
		return v, false
	}
	flags := strings.Fields(string(text))
	switch {
	case slices.Contains(flags, "avx512f") && slices.Contains(flags, "avx512_vbmi2"):
		return avx512, true
	case slices.Contains(flags, "avx2"):
		return avx2, true
	}
	return plainGo, true
}

// The best variant of the machine is selected, and GODEBUG switches off each. The process with that setting runs the
// comparisons too.
func TestSelection(t *testing.T) {
	if want := os.Getenv(selection); want != "" {
		if chosen.String() != want {
			t.Errorf("%v is selected, want %s", chosen, want)
		}
		fmt.Println("selected", chosen)
		compare(t, map[variant]*Memory{}, input{modeID, defaults, []byte("p"), []byte("0123456789abcdef"), 32})
		return
	}
	if best, known := best(); known && chosen != best {
		t.Errorf("%v is selected, and this machine can run %v", chosen, best)
	}
	settings := map[variant]string{avx512: "", avx2: "cpu.avx512f=off", plainGo: "cpu.avx512f=off,cpu.avx2=off"}
	for _, v := range []variant{avx512, avx2, plainGo} {
		if v > chosen {
			fmt.Printf("NOT CHECKED: this machine cannot run argon2id with %v\n", v)
			continue
		}
		c := exec.Command(os.Args[0], "-test.run=^(TestSelection|TestVectorsOfTheRFC)$", "-test.count=1")
		c.Env = append(os.Environ(), "GODEBUG="+settings[v], selection+"="+v.String())
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "selected "+v.String()) {
			t.Errorf("%v: %v\n%s", v, err, out)
		}
	}
}

// The memory is allocated once: a hash allocates almost nothing.
func TestDeriveReusesItsMemory(t *testing.T) {
	var m Memory
	p := Params{MemoryKiB: 4096, Passes: 1, Lanes: 1}
	run := func() { m.Derive([]byte("password"), []byte("0123456789abcdef"), nil, nil, p, 32) }
	run()
	if n := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			run()
		}
	}).AllocedBytesPerOp(); n > 32<<10 {
		t.Errorf("a hash over 4 MiB allocates %d bytes", n)
	}
}

// Wiping leaves no block of the last hash, and no more memory is used than the blocks and the scratch memory.
func TestWipe(t *testing.T) {
	var m Memory
	m.Derive([]byte("password"), []byte("0123456789abcdef"), nil, nil, defaults, 32)
	if m.Size() != defaults.Size() || m.blocks[0] == (block{}) {
		t.Fatalf("%d bytes are kept, want %d", m.Size(), defaults.Size())
	}
	m.Wipe()
	for i, b := range m.blocks {
		if b != (block{}) {
			t.Fatalf("block %d is not wiped", i)
		}
	}
	if m.Free(); m.Size() != 0 {
		t.Errorf("%d bytes are kept after Free", m.Size())
	}
}

func BenchmarkDerive(b *testing.B) {
	password, salt := []byte("correct horse battery staple"), []byte("0123456789abcdef")
	for _, v := range variants() {
		b.Run(v.String(), func(b *testing.B) {
			m := Memory{with: v}
			defer m.Free()
			for b.Loop() {
				m.Derive(password, salt, nil, nil, defaults, 32)
			}
		})
	}
	b.Run("x-crypto", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey(password, salt, defaults.Passes, defaults.MemoryKiB, defaults.Lanes, 32)
		}
	})
}
