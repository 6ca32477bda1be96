//go:build !linux

package argon2id

func adviseHugePages([]byte) {}
