// Package guard keeps the rules of the firewall.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at firewall.go.
package guard
