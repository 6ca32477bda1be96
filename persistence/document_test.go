package persistence

import (
	"testing"

	"castellan/domain/people/document"
	"castellan/domain/people/document/documenttest"
)

func TestDocumentStore(t *testing.T) {
	suite(t, documenttest.Run, func(db *DB) document.Store { return NewDocuments(db) }, "document", "document_quota")
}
