// Package session keeps sessions with the history of logins, tokens that replace a password, and the geographic
// filters, allowed addresses and profiles of accounts.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at session.go.
package session
