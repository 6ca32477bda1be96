// Package delivery keeps messages that leave: the outbox and notifications.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at outbox.go.
package delivery
