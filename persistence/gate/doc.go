// Package gate keeps the routes and grants of the guard for gateways, and the operations of other services.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at gateway.go.
package gate
