package doctor

import (
	"strings"
	"testing"

	"castellan/config"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/setup"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

// The doctor lists deposits that are spellings of one transfer, and nothing while there are none.
func TestDoctorListsSpellings(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		deposits := New(config.Config{}, db).spellings()[0]
		for id, tx := range map[string]string{"d1": "0xAb", "d2": " ab", "d3": "ac"} {
			persistencetest.Exec(t, db, "INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, "+
				"sender_info, at, external_id, version) VALUES (?, 'u', 1, 1, 0, -5, ?, 'x', '', 1, ?, 1)", id, tx, id)
		}
		f := deposits.find(t.Context())
		if f.Severity != setup.Fault || f.State != "1 in several spellings: d1 and d2" || f.Mend == "" {
			t.Errorf("%+v", f)
		}
		persistencetest.Exec(t, db, "DELETE FROM deposit WHERE id = 'd2'")
		if f := deposits.find(t.Context()); f.Severity != setup.OK || !strings.HasPrefix(f.State, "none") {
			t.Errorf("%+v", f)
		}
	})
}

// The doctor names the accounts whose number 0.9 shortened.
func TestDoctorFindsShortenedNumbers(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		numbers := New(config.Config{}, db).spellings()[2]
		a, b := usertest.Sample(1), usertest.Sample(2)
		a.Phone = "+225707070707"
		storetest.Must(t, db.Commit(t.Context(), b))
		if f := numbers.find(t.Context()); f.Severity != setup.OK || f.State != "none is shortened" {
			t.Errorf("%+v", f)
		}
		storetest.Must(t, db.Commit(t.Context(), a))
		if f := numbers.find(t.Context()); f.Severity != setup.Fault || f.State != "1 are shortened: "+a.ID {
			t.Errorf("%+v", f)
		}
	})
}
