package argon2id

import "syscall"

// adviseHugePages requests huge pages. A kernel without them, or a setting that forbids them, leaves the small ones.
func adviseHugePages(memory []byte) {
	if len(memory) > 0 {
		_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE)
	}
}
