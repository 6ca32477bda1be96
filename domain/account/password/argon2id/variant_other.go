//go:build !amd64

package argon2id

func fastest() variant { return plainGo }

func compressAVX2(_, _, _ *block, _ bool, _ *scratch, _ *ahead) uint32 { panic("not on amd64") }

func compressAVX512(_, _, _ *block, _ bool, _ *scratch, _ *ahead) uint32 { panic("not on amd64") }
