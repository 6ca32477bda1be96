package kit

// This file exports internals to the tests of the package.
type (
	ArchiveRow    = archiveRow
	CheckpointRow = checkpointRow
)

var (
	ArchiveMAC  = archiveMAC
	ReadArchive = readArchive
)

// Seal makes the file and the row that names it.
func (f *archiveFile) Seal(key []byte, before archiveRow) (archiveRow, []byte, error) {
	return f.seal(key, before)
}

// Sealed is the checkpoint with its MAC.
func (c checkpointRow) Sealed(key, previous []byte) checkpointRow {
	c.Hash = c.sum(macOf(key), previous)
	return c
}
