// Package office keeps what the back office publishes and decides: announcements, contracts
// and requests for approval.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at announcement.go.
package office
