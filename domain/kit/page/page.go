// Package page owns how a growing list is read (decision D-GEN-11): newest
// first, so many records at a time.
//
// The one idea: a page begins after a record and not after a number of records,
// so the last page of a million records costs what the first one costs. The
// position of a record, its mark, is declared once, beside the record.
//
// Start reading at Query; http/rest shows a list by rest.List.
package page

// Query asks for one page of a list in which records stand in the order of their
// marks.
type Query[M any] struct {
	After *M   // mark of the last record of the page before; nil: the first page
	Limit int  // of records; 0: none
	Count bool // whether Of.Total is wanted
}

// Of is a page.
type Of[T any] struct {
	Records []T
	More    bool // whether records follow
	Total   int  // records on all pages together; 0 where the query does not ask
}

// Marked is a record that tells where it stands in its list. A mark is a struct
// of exported fields, which together are unique in the list; they hold no secret,
// because clients carry them.
type Marked[M any] interface{ Mark() M }
