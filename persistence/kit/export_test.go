package kit

// This file exports internals to the tests of the package.
type (
	ArchiveRow = archiveRow
	AuditRow   = auditRow
	JobRow     = jobRow
)

var (
	AuditFilters = auditFilters
	AuditOrder   = auditOrder
	AuditRows    = auditRows
	JobFilters   = jobFilters
	JobOrder     = jobOrder
	JobsTable    = jobs
	ReadArchive  = readArchive
)

// Seal makes the file and the row that names it.
func (f *archiveFile) Seal(key []byte, before archiveRow) (archiveRow, []byte, error) {
	return f.seal(key, before)
}
