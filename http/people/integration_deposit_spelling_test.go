package people_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	moneystore "castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// spellings are other spellings of a hexadecimal text.
func spellings(text string) []string {
	return []string{" " + text, text + " ", `\t` + text, text + `\r\n`, `\u00a0` + text, strings.ToUpper(text),
		"0X" + text[2:], text[2:], " " + strings.ToUpper(text[2:])}
}

// D-INT-05: a transfer is credited once, in whatever spelling its hash and its address are sent. The first spelling is
// stored. A report in another spelling under the same externalId is a repetition.
func TestDepositSpellings(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		first := edited(final, "0xAb", " 0xAbC1", "bc1jane", "0xDe12 ")
		id := s.reports(first, "finalized", 1)
		for n, spelled := range append(spellings("0xabc1"), "0xAbC1") {
			for _, to := range append(spellings("0xde12"), "0xDe12") {
				other := edited(final, "d1", fmt.Sprint("n", n), "0xAb", spelled, "bc1jane", to)
				s.Wants(report, other, 409, "RECORD_ALREADY_EXIST")
				again := edited(final, "0xAb", spelled, "bc1jane", to, "bc1from", " bc1from")
				storetest.Equal(t, s.reports(again, "finalized", 1), id, spelled, "instead of")
			}
		}
		s.has("jane", "0.25")
		storetest.Equal(t, s.count("deposit", "tx_id = ' 0xAbC1' AND to_address = '0xDe12 '"), 1, "in the sent spelling")
		own := transaction.Address(ledgerAccount("jane", s.asset()))
		s.reports(edited(final, "d1", "own", "0xAb", "0xf1", "bc1jane", own), "finalized", 1)
		s.Wants(report, edited(final, "d1", "own2", "0xAb", "0xf1", "bc1jane", own+" "), 409, "RECORD_ALREADY_EXIST")
		s.Wants(report, edited(final, "d1", "own2", "0xAb", "0xf1", `"toAddress":"bc1jane",`, ""), 409,
			"RECORD_ALREADY_EXIST")
		s.Wants(report, edited(final, "d1", "kurts", "0xAb", "0xf2", `"jane"`, `"kurt"`, "bc1jane", own+" "), 400,
			"INVALID_FIELD toAddress")
		for _, hidden := range []string{`0x\u200bab`, `\u200b0xab`, `0xab\ufeff`, `0x ab`, `\u202e0xab`, "0xаb"} {
			for field, old := range map[string]string{"txId": "0xAb", "toAddress": "bc1jane", "fromAddress": "bc1from"} {
				s.Wants(report, edited(final, "d1", "h", old, hidden), 400, "INVALID_FIELD "+field)
			}
		}
		s.has("jane", "0.5")
	})
}

// A program without a canonical form may work beside this one. It claims the spelling that it was sent, and so does
// this one; what it has stored is found in every spelling.
func TestDepositBesideAnEarlierVersion(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		s.reports(edited(waiting, "0xAb", "0xAA11", "bc1jane", "0xBB"), "waitingSenderInfo", -5)
		key := func(tx, to string) string {
			sum := sha256.Sum256([]byte(strings.ToLower(fmt.Sprintf("%d\n%q\n%q", s.asset(), tx, to))))
			return hex.EncodeToString(sum[:])
		}
		storetest.Equal(t, s.count("integration_claim", "external_id = '"+key("0xAA11", "0xBB")+"'"), 1, "claims of 0.9")
		for n, c := range [][2]string{{"0xcc22", "0xDD"}, {" 0xcc33", "0xDD"}, {"0xCC44\u200b", "0xDD\t"}} {
			id, external := fmt.Sprint("old", n), fmt.Sprint("o", n)
			persistencetest.Exec(t, s.db, "INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, "+
				"sender_info, at, external_id, version) VALUES (?, 'jane', ?, 1, 0, -5, ?, ?, '', 1, ?, 1)", id, s.asset(), c[0],
				c[1], external)
			persistencetest.Exec(t, s.db, "INSERT INTO integration_claim (kind, external_id, digest, record_id, created_at) "+
				"VALUES ('deposit-received', ?, ?, ?, 1)", key(c[0], c[1]), []byte{1}, id)
		}
		for _, tx := range slices.Concat(spellings("0xcc22"), spellings("0xcc33"), spellings("0xcc44")) {
			s.Wants(report, edited(final, "d1", "n", "0xAb", tx, "bc1jane", "0xdd"), 409, "RECORD_ALREADY_EXIST")
		}
		got, err := moneystore.NewTransactions(s.db).Respelled(t.Context(), 10)
		if storetest.Must(t, err); len(got) != 0 {
			t.Errorf("respelled: %q", got)
		}
		for n, tx := range []string{"CC22", " 0xCC33"} {
			persistencetest.Exec(t, s.db, "INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, "+
				"sender_info, at, external_id, version) VALUES (?, 'jane', ?, 1, 0, -5, ?, 'DD', '', 1, ?, 1)",
				fmt.Sprint("twin", n), s.asset(), tx, fmt.Sprint("t", n))
		}
		got, err = moneystore.NewTransactions(s.db).Respelled(t.Context(), 10)
		if want := []string{"old0 and twin0", "old1 and twin1"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("respelled: %q, %v, want %q", got, err, want)
		}
	})
}

// D-INT-05: a report without an address and one with the real address are one transfer, if transaction, user and amount
// are the same, also if they come at once. Outputs to other addresses, or of other amounts, are deposits of their own.
func TestDepositWithoutAnAddress(t *testing.T) {
	bothMoney(t, func(s integrationMoney) {
		n := 0
		body := func(tx, amount, to string) string {
			n++
			if to != "" {
				to = `"toAddress":"` + to + `",`
			}
			return edited(final, "d1", fmt.Sprint("e", n), "0xAb", tx, "0.25", amount, `"toAddress":"bc1jane",`, to)
		}
		const taken = "RECORD_ALREADY_EXIST"
		s.reports(body("0xa1", "0.25", ""), "finalized", 1)
		s.Wants(report, body(" A1", "0.250", "bc1jane"), 409, taken)
		s.reports(body("0xa1", "0.5", "bc1jane"), "finalized", 1)
		s.reports(body("0xa2", "0.25", "bc1jane"), "finalized", 1)
		s.reports(body("0xa2", "0.25", "bc1other"), "finalized", 1)
		s.Wants(report, body("0XA2", "0.25", ""), 409, taken)
		s.reports(body("0xa2", "1", ""), "finalized", 1)
		tron := [2]string{"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"}
		s.reports(body("0xa3", "1", tron[0]), "finalized", 1)
		s.Wants(report, body("0xa3", "1", tron[1]), 409, taken)
		s.has("jane", "3.25")
		atOnce := func(tx string, to ...string) (accepted int) {
			for i, address := range to {
				to[i] = body(tx, "0.25", address)
			}
			got := at(s.Site, report, to...)
			storetest.Equal(t, len(got[200])+len(got[409]), len(to), "answers", got)
			return len(got[200])
		}
		for i := range 8 {
			storetest.Equal(t, atOnce(fmt.Sprint("0xb", i), "", "bc1jane"), 1, "of one transfer")
			storetest.Equal(t, atOnce(fmt.Sprint("0xc", i), "bc1jane", "bc1other", "bc1third"), 3, "of three outputs")
		}
	})
}
