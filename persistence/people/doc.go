// Package people keeps what is known of persons and companies: identities, documents,
// agreements and standings.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at identity.go.
package people
