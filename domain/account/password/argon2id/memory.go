package argon2id

import (
	"syscall"
	"unsafe"
)

// Memory is the memory of one hash at a time. It is mapped from the system, outside the heap: the collector would let
// the garbage of the whole service grow in proportion to the slots. The zero Memory is ready to use and grows when
// needed; its owner frees it.
type Memory struct {
	blocks  []block
	scratch *scratch // of the compression; cleared after each hash
	mapped  []byte   // the memory behind both
	with    variant  // of the compression; 0: chosen
}

// scratch holds intermediate results of the compression of a block.
type scratch [2 * blockWords]uint64

const (
	scratchBlocks = 2
	hugePage      = 2 << 20
)

// grow makes room for a hash; the contents need not be zero, because the
// first pass writes every block before it is read.
func (m *Memory) grow(blocks uint32) {
	if uint32(len(m.blocks)) >= blocks {
		return
	}
	m.Free()
	size := (int(blocks) + scratchBlocks) * blockBytes
	// The first block begins a huge page. Pages that are never touched cost no memory.
	mapped, err := syscall.Mmap(-1, 0, size+hugePage, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil { // the system has no more mappings; the heap may have room
		all := make([]block, blocks+scratchBlocks)
		m.blocks = all[:blocks]
		m.scratch = (*scratch)(unsafe.Pointer(&all[blocks])) // #nosec G103: of two blocks
		return
	}
	m.mapped = mapped
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mapped))) % hugePage) // #nosec G103: only computes
	mapped = mapped[start : start+size]
	// Huge pages save a tenth of a hash and most page faults. Only whole ones are requested, so that no memory is
	// added. The system may refuse them.
	adviseHugePages(mapped[:size/hugePage*hugePage])
	// #nosec G103: memory of the system, of exactly that many blocks (record 1).
	all := unsafe.Slice((*block)(unsafe.Pointer(unsafe.SliceData(mapped))), blocks+scratchBlocks)
	m.blocks = all[:blocks:blocks]
	m.scratch = (*scratch)(unsafe.Pointer(&all[blocks])) // #nosec G103: of two blocks
}

// Size is the number of bytes that are kept for blocks.
func (m *Memory) Size() int { return len(m.blocks) * blockBytes }

// Wipe clears the blocks: those of the last hash would make guessing its password cheaper.
func (m *Memory) Wipe() { clear(m.blocks) }

// Free returns the memory to the system.
func (m *Memory) Free() {
	if m.mapped != nil {
		syscall.Munmap(m.mapped) // unmapping a mapped region cannot fail
	}
	m.blocks, m.scratch, m.mapped = nil, nil, nil
}
