// Package money keeps money and what bounds it: the ledger, currencies, rates, transactions,
// balances, blockages and limits.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at ledger.go.
package money
