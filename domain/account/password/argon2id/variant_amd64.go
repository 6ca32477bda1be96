package argon2id

import "golang.org/x/sys/cpu"

// fastest prefers AVX-512 only on processors since Ice Lake and Zen 4, which VBMI2 identifies: earlier ones may reduce
// their clock for it. GODEBUG=cpu.avx512f=off and cpu.avx2=off switch the versions off.
func fastest() variant {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512VBMI2:
		return avx512
	case cpu.X86.HasAVX2:
		return avx2
	}
	return plainGo
}

// The functions of compress_amd64.s are compress, and fetch and return the reference of the next block. tools/argon2
// generates them.

//go:noescape
func compressAVX2(out, x, y *block, keep bool, scratch *scratch, next *ahead) (ref uint32)

//go:noescape
func compressAVX512(out, x, y *block, keep bool, scratch *scratch, next *ahead) (ref uint32)
