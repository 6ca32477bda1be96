package persistence

import (
	"testing"

	"castellan/domain/document"
	"castellan/domain/document/documenttest"
)

func TestDocumentStore(t *testing.T) {
	suite(t, documenttest.Run, func(db *DB) document.Store { return NewDocuments(db) }, "document", "document_quota")
}
