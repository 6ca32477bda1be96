package persistence

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// Every other write is made of statements. Do not list a write that a login, a challenge,
// a push, a socket or a transfer makes. Its batch would leave the pipelined executor, and a login would cost three
// times as much on PostgreSQL.
var functionWrites = []string{
	"balance.Summed",      // once a day
	"password.ClearGuard", // an operator unlocks an account
	"password.SetKinds",   // once an hour
	"provider.Arrived",    // every five minutes
	"rate.Arrived",        // every few minutes
	"user.Add",
	"user.Grant",
	"user.Revoke",
}

func TestWritesThatAreFunctions(t *testing.T) {
	ks := kinds(time.Now)
	var got []string
	for _, k := range slices.Concat(ks.Fences, ks.Writes, ks.Deltas) {
		if f := k.Function(); f != "" {
			got = append(got, f)
		}
	}
	slices.Sort(got)
	storetest.Same(t, got, functionWrites, "functions")
}
