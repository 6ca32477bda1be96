// Package permit keeps roles with their permissions, and the keys of services and of cron jobs.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at resource.go.
package permit
