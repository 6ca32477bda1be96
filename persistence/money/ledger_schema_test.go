package money_test

import (
	"context"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

// ledgerRows are valid rows: two users and a treasury of asset 1, and a user of asset 2. There are a deposit of 10, a
// hold of 4 on it, and a closed day.
const ledgerRows = `
INSERT INTO asset VALUES (1, 10000000000000000), (2, 1);
INSERT INTO account VALUES ('u1', 'user', 'ada', 1, TRUE), ('u2', 'user', 'bob', 1, TRUE);
INSERT INTO account VALUES ('t', 'treasury', '', 1, FALSE), ('x', 'user', 'ada', 2, TRUE);
INSERT INTO transfer VALUES ('m1', 'm1', 'deposit', 'r1', $digest, 1, 10000000000000000, 't', 'u1', 10, 0, NULL,
  '', 'op', 1, 1, NULL, 1);
UPDATE balance SET posted_hi = 10, seq = 1, version = 2 WHERE account_id = 'u1';
UPDATE balance SET posted_hi = -10, seq = 1, version = 2 WHERE account_id = 't';
INSERT INTO hold VALUES ('h1', 'u1', 'queue', 'w1', 'withdrawal', 4, 0, 'active', NULL, 1);
INSERT INTO hold VALUES ('h2', 'u1', 'queue', 'w2', 'withdrawal', 1, 0, 'active', NULL, 1);
UPDATE balance SET locked_hi = 5, version = 3 WHERE account_id = 'u1';
UPDATE hold SET state = 'released', version = 2 WHERE id = 'h2';
UPDATE balance SET locked_hi = 4, version = 4 WHERE account_id = 'u1';
INSERT INTO day (account_id, day, posted_hi, posted_lo, in_hi, in_lo, out_hi, out_lo, seq)
  VALUES ('u1', 100, 10, 0, 10, 0, 0, 0, 1)`

// dayOf writes a day as programs without the wide columns do.
func dayOf(verb, values string) string {
	return verb + " INTO day (account_id, day, posted_hi, posted_lo, in_hi, in_lo, out_hi, out_lo, seq) " +
		"VALUES (" + values + ")"
}

// movement is a transfer of which a case changes a part.
func movement(change ...string) string {
	return strings.NewReplacer(append(change, "$id", "'m2'", "$ref", "'r2'", "$asset", "1, 10000000000000000",
		"$sides", "'t', 'u1'", "$amount", "3, 0", "$reverses", "NULL", "$seqs", "NULL, 2")...).Replace(
		"INSERT INTO transfer VALUES ($id, 'g', 'deposit', $ref, $digest, $asset, $sides, $amount, $reverses, '', 'op', " +
			"1, 1, $seqs)")
}

func balanceOf(account, set string) string {
	return "UPDATE balance SET " + set + ", version = version + 1 WHERE account_id = '" + account + "'"
}

// Each invariant of the ledger that a database can hold is held without the service:
// plain SQL that breaks it is refused.
func TestLedgerInvariantsInPlainSQL(t *testing.T) {
	const hold = "INSERT INTO hold VALUES "
	refused := map[string]string{
		"1 both sides are one account":         movement("$sides", "'u1', 'u1'"),
		"1 an amount of nothing":               movement("$amount", "0, 0"),
		"1 a negative amount":                  movement("$amount", "-1, 10000000000000000"),
		"1 a negative part":                    movement("$amount", "1, -10000000000000000"),
		"1 an amount too large":                movement("$amount", "1000000000000000000, 0"),
		"1 a part too large":                   movement("$amount", "0, 1000000000000000000"),
		"2 the credit is of another asset":     movement("$sides", "'t', 'x'", "$seqs", "NULL, 1"),
		"2 the debit is of another asset":      movement("$sides", "'x', 'u1'", "$seqs", "1, 2"),
		"2 an account that is not there":       movement("$sides", "'t', 'nobody'"),
		"3 more decimals than the asset has":   movement("$amount", "1, 5000000000000000"),
		"3 a precision the asset never had":    movement("$asset", "1, 1"),
		"3 a coarser precision":                "INSERT INTO asset VALUES (1, 100000000000000000)",
		"3 no power of ten":                    "INSERT INTO asset VALUES (3, 7)",
		"3 an account of no asset":             "INSERT INTO account VALUES ('y', 'user', 'eve', 9, TRUE)",
		"4 a reference twice":                  movement("$ref", "'r1'"),
		"4 an id twice":                        movement("$id", "'m1'"),
		"4 a movement without a reference":     movement("$ref", "''"),
		"5 a reversal of another amount":       movement("$sides", "'u1', 't'", "$seqs", "2, NULL", "$reverses", "'m1'"),
		"5 a reversal in the same direction":   movement("$amount", "10, 0", "$reverses", "'m1'"),
		"5 a reversal of nothing":              movement("$sides", "'u1', 't'", "$seqs", "2, NULL", "$reverses", "'m9'"),
		"6 a transfer changed":                 "UPDATE transfer SET hi = 11 WHERE id = 'm1'",
		"6 a transfer removed":                 "DELETE FROM transfer WHERE id = 'm1'",
		"6 an account changed":                 "UPDATE account SET owner = 'eve' WHERE id = 'u1'",
		"6 an account removed":                 "DELETE FROM account WHERE id = 'u2'",
		"6 an asset changed":                   "UPDATE asset SET unit = 1 WHERE id = 1",
		"6 an asset removed":                   "DELETE FROM asset WHERE id = 2",
		"6 a balance removed":                  "DELETE FROM balance WHERE account_id = 'u2'",
		"6 a hold removed":                     "DELETE FROM hold WHERE id = 'h1'",
		"6 a closed day changed":               "UPDATE day SET posted_hi = 9",
		"6 a closed day removed":               "DELETE FROM day",
		"6 a day closed late":                  dayOf("INSERT", "'u1', 99, 0, 0, 0, 0, 0, 0, 1"),
		"7 a bounded account below zero":       balanceOf("u2", "posted_hi = -1, posted_lo = 999999999999999999, seq = 1"),
		"7 a part beyond a unit":               balanceOf("u2", "posted_lo = 1000000000000000000, seq = 1"),
		"7 a balance too large":                balanceOf("t", "posted_hi = 1000000000000000000, seq = 2"),
		"7 a negative lock":                    balanceOf("u1", "locked_hi = -1"),
		"7 a lock on an unbounded account":     balanceOf("t", "locked_hi = 1"),
		"8 what is locked is taken":            balanceOf("u1", "posted_hi = 3, posted_lo = 999999999999999999, seq = 2"),
		"8 more is taken than unlocked":        balanceOf("u1", "posted_hi = 0, locked_hi = 1, seq = 2"),
		"8 more is taken than unlocked, parts": balanceOf("u1", "posted_hi = 5, locked_hi = 5, locked_lo = 1, seq = 2"),
		"9 bounded is switched off":            balanceOf("u1", "bounded = FALSE"),
		"9 bounded is switched off, no lock":   balanceOf("u2", "bounded = FALSE"),
		"9 bounded is switched on":             balanceOf("t", "posted_hi = 0, seq = 2, bounded = TRUE"),
		"10 a hold that begins settled":        hold + "('h3', 'u1', 'q', 'w3', '', 1, 0, 'settled', 'm1', 1)",
		"10 a hold of no known state":          hold + "('h3', 'u1', 'q', 'w3', '', 1, 0, 'open', NULL, 1)",
		"10 a hold of nothing":                 hold + "('h3', 'u1', 'q', 'w3', '', 0, 0, 'active', NULL, 1)",
		"10 a hold's reference twice":          hold + "('h3', 'u1', 'queue', 'w1', '', 1, 0, 'active', NULL, 1)",
		"10 a hold of no account":              hold + "('h3', 'nobody', 'q', 'w3', '', 1, 0, 'active', NULL, 1)",
		"10 an ended hold ends again":          "UPDATE hold SET state = 'released', version = 3 WHERE id = 'h2'",
		"10 an ended hold begins again":        "UPDATE hold SET state = 'active', version = 3 WHERE id = 'h2'",
		"10 a hold's amount changed":           "UPDATE hold SET hi = 1, state = 'released', version = 2 WHERE id = 'h1'",
		"10 settled by no transfer":            "UPDATE hold SET state = 'settled', version = 2 WHERE id = 'h1'",
		"10 settled by a transfer not there": "UPDATE hold SET state = 'settled', transfer_id = 'm9', version = 2 " +
			"WHERE id = 'h1'",
		"7 a negative sum of a day": "INSERT INTO day (account_id, day, posted_hi, posted_lo, in_hi, in_lo, in_over, " +
			"out_hi, out_lo, seq) VALUES ('u1', 101, 10, 0, 0, 0, -1, 0, 0, 1)",
		"10 released by a transfer": "UPDATE hold SET state = 'released', transfer_id = 'm1', version = 2 " +
			"WHERE id = 'h1'",
		"11 a number twice on a side":         movement("$seqs", "NULL, 1"),
		"11 a balance moves without transfer": balanceOf("u1", "posted_hi = 11"),
		"11 numbers run backwards":            balanceOf("u1", "seq = 0"),
		"11 a balance from nowhere":           "INSERT INTO balance VALUES ('z', TRUE, 5, 0, 0, 0, 0, 1)",
		"11 a balance twice":                  "INSERT INTO balance (account_id, bounded) VALUES ('u1', TRUE)",
		"11 a version that stays":             "UPDATE balance SET locked_hi = 5 WHERE account_id = 'u1'",
	}
	only := map[bool]map[string]string{
		false: { // SQLite
			"1 a float":              movement("$amount", "1.5, 0"),
			"6 a transfer replaced":  strings.Replace(movement("$id", "'m1'"), "INSERT", "REPLACE", 1),
			"6 a reference replaced": strings.Replace(movement("$ref", "'r1'"), "INSERT", "REPLACE", 1),
			"6 a number replaced":    strings.Replace(movement("$seqs", "NULL, 1"), "INSERT", "REPLACE", 1),
			"6 an account replaced":  "REPLACE INTO account VALUES ('u1', 'user', 'ada', 1, TRUE)",
			"6 an account's owner":   "REPLACE INTO account VALUES ('u3', 'user', 'ada', 1, TRUE)",
			"6 a balance replaced":   "REPLACE INTO balance (account_id, bounded) VALUES ('u1', TRUE)",
			"6 a hold replaced":      "REPLACE INTO hold VALUES ('h1', 'u1', 'queue', 'w1', '', 1, 0, 'active', NULL, 1)",
			"6 a day replaced":       dayOf("REPLACE", "'u1', 100, 9, 0, 9, 0, 0, 0, 1"),
			"7 an overflow":          balanceOf("t", "posted_lo = posted_lo + 9223372036854775807 + 1, seq = 2"),
		},
		true: { // PostgreSQL
			"6 transfers emptied": "TRUNCATE transfer CASCADE",
			"6 balances emptied":  "TRUNCATE balance",
			"6 holds emptied":     "TRUNCATE hold",
			"6 days emptied":      "TRUNCATE day",
			"6 accounts emptied":  "TRUNCATE account CASCADE",
			"6 assets emptied":    "TRUNCATE asset CASCADE",
		},
	}
	stands := map[string]string{
		"a deposit":                          movement(),
		"an exact reversal":                  reversal("'m2'"),
		"a finer precision":                  "INSERT INTO asset VALUES (1, 1)",
		"all but what is locked":             balanceOf("u1", "posted_hi = 4, seq = 2"),
		"what is locked, when it is settled": balanceOf("u1", "posted_hi = 6, locked_hi = 0, seq = 2"),
		"a lock beyond the balance":          balanceOf("u1", "locked_hi = 400"),
		"a release":                          "UPDATE hold SET state = 'released', version = 2 WHERE id = 'h1'",
		"a settlement": "UPDATE hold SET state = 'settled', transfer_id = 'm1', version = 2 " +
			"WHERE id = 'h1'",
		"an unbounded account below zero": balanceOf("t", "posted_hi = -99, seq = 2"),
	}
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		try := func(text string) error {
			digest := "zeroblob(32)"
			if db.Postgres() {
				digest = `decode(repeat('00', 32), 'hex')`
			}
			return db.InTx(t.Context(), func(ctx context.Context) error {
				for _, one := range strings.Split(strings.ReplaceAll(text, "$digest", digest), ";") {
					if _, err := db.Conn(ctx).ExecContext(ctx, one); err != nil {
						return err
					}
				}
				return nil
			})
		}
		storetest.Must(t, try(ledgerRows))
		for name, text := range stands {
			if err := kept(try, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, all := range []map[string]string{refused, only[db.Postgres()]} {
			for name, text := range all {
				if try(text) == nil {
					t.Errorf("%s: the database took it", name)
				}
			}
		}
		// Once reversed, a movement is not reversed again.
		storetest.Must(t, try(reversal("'m2'")))
		if try(strings.Replace(strings.Replace(reversal("'m3'"), "'r2'", "'r3'", 1), "2, NULL", "3, NULL", 1)) == nil {
			t.Error("5 reversed twice: the database took it")
		}
	})
}

func reversal(id string) string {
	return movement("$id", id, "$sides", "'u1', 't'", "$amount", "10, 0", "$reverses", "'m1'", "$seqs", "2, NULL")
}

// kept runs statements that must stand, and takes them back.
func kept(try func(string) error, text string) error {
	const undo = "; SELECT no_such_column"
	err := try(text + undo)
	if err != nil && strings.Contains(err.Error(), "no_such_column") {
		return nil
	}
	return err
}
