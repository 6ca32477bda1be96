package argon2id

//go:generate go -C ../../../../tools/argon2 run . -out ../../domain/account/password/argon2id/compress_amd64.s

// variant is an implementation of compress.
type variant int

const (
	plainGo variant = 1 + iota
	avx2
	avx512
)

// String returns the name in logs and metrics.
func (v variant) String() string { return [...]string{"", "go", "avx2", "avx512"}[v] }

// chosen is the fastest variant that this machine can run.
var chosen = fastest()

// Vectors returns the vector instructions that hashes use on this machine: avx512, avx2, or go for none. Without them
// a hash takes three to four times as long.
func Vectors() string { return chosen.String() }

// compress is compress in the variant of the filler, and returns the reference of the next block. The variant is
// selected by a switch: behind a function value the filler would escape to the heap.
func (f *filler) compress(out, x, y *block, keep bool) (reference uint32) {
	switch f.with {
	case avx512:
		return compressAVX512(out, x, y, keep, f.scratch, &f.ahead)
	case avx2:
		return compressAVX2(out, x, y, keep, f.scratch, &f.ahead)
	}
	compress(out, x, y, keep, (*block)(f.scratch[:blockWords]))
	return f.ahead.reference(uint32(out[0]))
}
