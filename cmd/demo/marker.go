package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/persistence/account"
	"castellan/persistence/money"
)

// marker begins the names of the seeds that record the finished stages of a run.
const marker = "demo "

// The errors of a refused run.
var (
	ErrPeople   = errors.New("the database contains accounts: demo data needs a new database")
	ErrMoney    = errors.New("the ledger of the database has movements: demo data needs a new database")
	ErrServing  = errors.New("the service runs on the database: stop it first")
	ErrFinished = errors.New("the database already has its demo data")
)

// Unfinished returns the options of the unfinished run in the database; ok is false if there is none.
func Unfinished(ctx context.Context, w World) (o Options, ok bool, err error) {
	begun, err := w.DB.SeedsOf(ctx, marker+"{")
	if err != nil || len(begun) == 0 {
		return o, false, err
	}
	return o, true, json.Unmarshal([]byte(strings.TrimPrefix(begun[0], marker)), &o)
}

// begin stores the options, or compares them with the stored ones.
func (r *run) begin(ctx context.Context) {
	if value(r.DB.Seeded(ctx, marker+"done")) {
		check(ErrFinished)
	}
	was, begun, err := Unfinished(ctx, r.World)
	check(err)
	switch {
	case !begun:
		r.once(ctx, string(value(json.Marshal(r.Options))), r.checkEmpty)
	case was.Seed != r.Seed || was.Users != r.Users || !was.Now.Equal(r.Now):
		check(fmt.Errorf("the database has an unfinished run of --seed %d --users %d --now %s: continue that run",
			was.Seed, was.Users, was.Now.Format(time.RFC3339)))
	}
}

// checkEmpty ends the run with ErrPeople if there are accounts, and with ErrMoney if money was moved. The accounts that
// development mode creates at its first start do not count.
func (r *run) checkEmpty(ctx context.Context) {
	for _, u := range value(account.NewUsers(r.DB).List(ctx, "", 3)) {
		if !u.Demo {
			check(ErrPeople)
		}
	}
	_, moved, err := money.NewLedger(r.DB).FirstDay(ctx)
	if check(err); moved {
		check(ErrMoney)
	}
}
