package people_test

import (
	"fmt"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/domain/people/identity/identitytest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIdentityStore(t *testing.T) {
	persistencetest.RunBoth(t, identitytest.Run,
		func(db *persistence.DB) identity.Store { return people.NewIdentities(db) }, "user_identity",
		"additional_info", "users", "user_role")
}

// Each answer is in the columns of its question.
func TestInformKeepsEachAnswer(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		i := identity.Info{UserID: "jane"}
		for n := range i.Choices {
			i.Choices[n] = identity.Choice{OptionID: int64(n + 1), Explanation: fmt.Sprint("why ", n+1)}
		}
		_, err := people.NewIdentities(db).Inform(t.Context(), i)
		storetest.Must(t, err)
		var ids [5]int64
		var texts [5]string
		storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("additional_info").
			Column("purpose", "source", "income", "amount", "count",
				"purpose_text", "source_text", "income_text", "amount_text", "count_text").
			Scan(t.Context(), &ids[0], &ids[1], &ids[2], &ids[3], &ids[4],
				&texts[0], &texts[1], &texts[2], &texts[3], &texts[4]))
		for n, c := range i.Choices {
			if ids[n] != c.OptionID || texts[n] != c.Explanation {
				t.Errorf("answer %d is %d, %q", n+1, ids[n], texts[n])
			}
		}
	})
}
