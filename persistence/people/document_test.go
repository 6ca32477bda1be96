package people_test

import (
	"testing"

	"castellan/domain/people/document"
	"castellan/domain/people/document/documenttest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDocumentStore(t *testing.T) {
	persistencetest.RunBoth(t, documenttest.Run,
		func(db *persistence.DB) document.Store { return people.NewDocuments(db) }, "document", "document_quota")
}
