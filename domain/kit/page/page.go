// Package page defines how a growing list is read (decision D-GEN-11): newest first unless the
// caller wants the oldest first, one page at a time.
//
// The one idea: a page begins after a record and not after a number of records, so the last page of a million records
// costs as much as the first. The position of a record, its mark, is declared once, beside the record.
//
// Start reading at Query; rest.List of http/rest serves a list.
package page

import "time"

// Query requests one page of a list that is sorted by the marks of its records.
type Query[M any] struct {
	After *M   // mark of the last record of the previous page; nil: the first page
	Limit int  // maximum records of the page; 0: none
	Count bool // whether to set Of.Total
	// Oldest reads the oldest records first. It is for the lists whose requests offer an order (rest.Sorted).
	Oldest bool
}

// Of is a page.
type Of[T any] struct {
	Records []T
	More    bool // whether more records follow
	Total   int  // records on all pages together; 0 unless requested
}

// Backlog summarizes the pending records of a queue.
type Backlog struct {
	Count  int       // pending records, at most the bound of the reader
	More   bool      // whether there are more than Count
	Oldest time.Time // creation of the oldest; zero without any
}

// Marked is a record with a position in its list. A mark is a struct of exported fields, which together are unique in
// the list. The fields hold no secret, because clients see them.
type Marked[M any] interface{ Mark() M }
