// Package access keeps who an account is and how it proves it: users, passwords, sessions,
// factors, devices, roles and keys.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at user.go.
package access
