package people_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/people/document"
	"castellan/domain/people/kyc"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

var boss = audit.By{UserID: "boss", IP: "192.0.2.1"}

// raisesTo sets the parameter KYC_LEVEL.
func (s *kycSite) raisesTo(object parameter.Reached) {
	s.t.Helper()
	store := kit.NewParameters(s.db)
	storetest.Must(s.t, s.db.InTx(s.t.Context(), func(ctx context.Context) error {
		if err := parameter.Seed(ctx, store); err != nil {
			return err
		}
		return parameter.KYCLevel.Change(ctx, store, func(parameter.Reached) (parameter.Reached, error) {
			return object, nil
		})
	}))
	live := parameter.NewCache(store)
	storetest.Must(s.t, live.Reload(s.t.Context()))
	s.service.Values = live.Set
}

// verdict decides on the identity of u1 by documents.
func (s *kycSite) verdict(value string, papers ...string) error {
	v := kyc.Verdict{UserID: "u1", KYCConfirm: value, DocumentIDs: papers, DocumentID: papers[0]}
	if value == user.Rejected {
		v.Reason = new("blurred")
	}
	return s.service.Decide(s.t.Context(), boss, v)
}

func (s *kycSite) address(value string) error {
	return s.service.Confirm(s.t.Context(), boss, "u1", value, "")
}

// The second of the two approvals raises the level, in either order; a level is never lowered and a special one is
// kept.
func TestLevelAfterBothApprovals(t *testing.T) {
	to := func(id int64) parameter.Reached { return parameter.Reached{LevelID: &id} }
	for name, c := range map[string]struct {
		to               parameter.Reached
		has, want        int
		identity, street string
	}{
		"raised":               {to(1), 0, 1, user.ManuelApproved, user.ManuelApproved},
		"by OCR or NFC":        {to(2), 1, 2, user.OCROrNFCApproved, user.ManuelApproved},
		"no parameter":         {parameter.Reached{}, 0, 0, user.ManuelApproved, user.ManuelApproved},
		"never lowered":        {to(1), 2, 2, user.ManuelApproved, user.ManuelApproved},
		"of that level":        {to(1), 1, 1, user.ManuelApproved, user.ManuelApproved},
		"no such level":        {to(7), 0, 0, user.ManuelApproved, user.ManuelApproved},
		"to a special level":   {to(10), 0, 0, user.ManuelApproved, user.ManuelApproved},
		"of a special level":   {to(12), 10, 10, user.ManuelApproved, user.ManuelApproved},
		"identity rejected":    {to(1), 0, 0, user.Rejected, user.ManuelApproved},
		"address rejected":     {to(1), 0, 0, user.ManuelApproved, user.Rejected},
		"address not decided":  {to(1), 0, 0, user.ManuelApproved, user.WaitingApproval},
		"identity not decided": {to(1), 0, 0, "", user.ManuelApproved},
	} {
		for _, identityFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := kycServe(t, persistencetest.SQLite(t))
				s.raisesTo(c.to)
				storetest.Must(t, s.service.Levels.Add(t.Context(), level.Level{ID: 12, Label: "Twelve"}))
				storetest.Must(t, s.db.Commit(t.Context(), user.SetLevel{UserID: "u1", Level: c.has}))
				paper := s.add("u1", 1, docPDF)
				steps := []func() error{func() error {
					if c.identity == "" {
						return nil
					}
					return s.verdict(c.identity, paper)
				}, func() error { return s.address(c.street) }}
				if !identityFirst {
					slices.Reverse(steps)
				}
				storetest.Must(t, steps[0]())
				storetest.Equal(t, s.user("u1").Level, c.has)
				storetest.Must(t, steps[1]())
				storetest.Equal(t, s.user("u1").Level, c.want)
				acts := strings.Join(persistencetest.Acts(t, s.db), "\n")
				if got := strings.Count(acts, "USER_LEVEL|boss|u1|u1|"); got == 1 != (c.has != c.want) {
					t.Errorf("audited\n%s", acts)
				}
			})
		}
	}
}

// noLevels is a store that fails to list levels.
type noLevels struct{ level.Store }

func (noLevels) List(context.Context, level.Query) ([]level.Level, error) {
	return nil, errors.New("broken")
}

// The level is part of the decision's unit: if it cannot be set, nothing is decided.
func TestDecisionFailsWithItsLevel(t *testing.T) {
	s := kycServe(t, persistencetest.SQLite(t))
	s.raisesTo(parameter.Reached{LevelID: new(int64(1))})
	storetest.Must(t, s.verdict(user.ManuelApproved, s.add("u1", 1, docPDF)))
	levels := s.service.Levels
	s.service.Levels = noLevels{levels}
	storetest.Fails(t, s.address(user.ManuelApproved), "", "decided without the level")
	if u := s.user("u1"); u.AddressConfirmed != user.WaitingApproval || u.Level != 0 {
		t.Errorf("half a decision: %+v", u)
	}
	s.service.Levels = levels
	storetest.Must(t, s.address(user.ManuelApproved))
	if u := s.user("u1"); u.AddressConfirmed != user.ManuelApproved || u.Level != 1 {
		t.Errorf("after the repetition: %+v", u)
	}
}

// A rejected account waits again when its user uploads an identity document, and only then.
func TestUploadReopens(t *testing.T) {
	s := kycServe(t, persistencetest.SQLite(t))
	s.documents.Follows = s.service.Reopens
	add := func(by, userID string, kind int64) (document.Document, error) {
		return s.documents.Add(t.Context(), audit.By{UserID: by}, document.Document{UserID: userID, Type: kind,
			Name: "a.pdf"}, []byte("%PDF-1.7"), document.Fields{})
	}
	types := s.service.Types
	for _, c := range []struct {
		by, userID string
		kind       int64
		was, want  string
	}{
		{"u1", "u1", document.Unclassified, user.Rejected, user.WaitingApproval},
		{"u1", "u1", types.Front, user.Rejected, user.WaitingApproval},
		{"u1", "u1", types.Back, user.Rejected, user.WaitingApproval},
		{"u1", "u1", types.Selfie, user.Rejected, user.WaitingApproval},
		{"u1", "u1", types.Address, user.Rejected, user.Rejected},
		{"boss", "u1", types.Front, user.Rejected, user.Rejected},
		{"u1", "u1", types.Front, user.ManuelApproved, user.ManuelApproved},
		{"u1", "u1", types.Front, user.WaitingApproval, user.WaitingApproval},
		{"u2", "u2", types.Front, user.Rejected, user.Rejected}, // of u1
	} {
		persistencetest.Exec(t, s.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", c.was)
		rows := func() int {
			return strings.Count(strings.Join(persistencetest.Acts(t, s.db), "\n"),
				"KYC_REOPEN|"+c.by+"|u1|u1|kycConfirm=rejected -> waitingApproval")
		}
		before := rows()
		added := storetest.Value(add(c.by, c.userID, c.kind))(t)
		reopens := c.was == user.Rejected && c.want == user.WaitingApproval
		if got := s.user("u1").KYCConfirm; got != c.want || (rows()-before == 1) != reopens ||
			s.state(added.ID) != "active/waitingApproval" {
			t.Errorf("%+v: %s, %d rows, %s", c, got, rows()-before, s.state(added.ID))
		}
	}
	// A document that fails to be stored reopens nothing.
	persistencetest.Exec(t, s.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", user.Rejected)
	s.documents.Quota = 0
	_, err := add("u1", "u1", types.Front)
	if storetest.Wants(t, err, fault.RecordLimitReached); s.user("u1").KYCConfirm != user.Rejected {
		t.Error("reopened without a document")
	}
}

// The operator reopens a rejected identity, once, and it can be decided on again.
func TestReopen(t *testing.T) {
	s := kycServe(t, persistencetest.SQLite(t))
	reopen := func(id string) error {
		return kyc.Reopen(t.Context(), s.users, s.service.Changes, audit.Operator, id)
	}
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
	storetest.Wants(t, reopen("u9"), fault.RecordNotFound)
	paper := s.add("u1", 1, docPDF)
	storetest.Must(t, s.verdict(user.Rejected, paper))
	storetest.OneWins(t, 8, fault.InvalidState, func(int) error { return reopen("u1") })
	storetest.Equal(t, s.user("u1").KYCConfirm, user.WaitingApproval)
	storetest.Must(t, s.verdict(user.ManuelApproved, paper))
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
}

// If no document has the type, the newest waiting picture without a type is shown, and each for one type only.
func TestImagesWithoutType(t *testing.T) {
	s := kycServe(t, persistencetest.SQLite(t))
	png, names := picturetest.PNG(40, 20), map[string]string{}
	add := func(name, userID string, kind int64, content []byte) string {
		id := s.add(userID, kind, content)
		names[id] = name
		return id
	}
	shows := func(want string) {
		t.Helper()
		all := storetest.Value(s.service.Images(t.Context(), boss, "u1"))(t)
		shown := func(p *picture.Picture) bool { return p != nil }
		got := fmt.Sprint(names[all.DocumentID], " ", shown(all.Front), shown(all.Back), shown(all.Selfie))
		storetest.Equal(t, got, want)
	}
	add("1", "u1", 0, png)
	add("2", "u1", 0, docPDF) // not a picture
	add("3", "u1", 5, png)    // of another type
	add("4", "u2", 0, png)    // of another user
	shows("1 true false false")
	fifth := add("5", "u1", 0, png)
	shows("5 true true false")
	sixth := add("6", "u1", 0, png)
	shows("6 true true true")
	storetest.Must(t, s.verdict(user.Rejected, sixth, fifth))
	shows("6 true true false") // the decided one, and the first as the back
	storetest.Must(t, kyc.Reopen(t.Context(), s.users, s.service.Changes, boss, "u1"))
	shows("1 true false false") // waiting documents come first
	typed := add("7", "u1", 1, png)
	shows("7 true true false") // a typed document comes first
	d := storetest.Value(s.documents.Store.Get(t.Context(), typed))(t)
	sealed := s.documents.Ring.Seal([]byte("no picture"), []byte(d.ID))
	storetest.Must(t, s.documents.Files.Put(t.Context(), d.Path, sealed))
	shows("7 false true false")
	storetest.Must(t, s.documents.Files.Delete(t.Context(), d.Path))
	storetest.Fails(t, storetest.Err(s.service.Images(t.Context(), boss, "u1")), "",
		"no error of bytes that cannot be read")
}

// A decision on an address without a proof uses the newest waiting picture, once.
func TestAddressProofWithoutType(t *testing.T) {
	s := kycServe(t, persistencetest.SQLite(t))
	confirm := func(value string) {
		t.Helper()
		storetest.Must(t, s.address(value))
	}
	confirm(user.ManuelApproved) // nothing waits
	png := picturetest.PNG(40, 20)
	all := []string{s.add("u1", 0, png), s.add("u1", 0, png), s.add("u1", 0, docPDF), s.add("u2", 0, png)}
	states := func(second string) {
		t.Helper()
		for i, id := range all {
			want := "active/waitingApproval"
			if i == 1 {
				want = second
			}
			storetest.Equal(t, s.state(id), want, i)
		}
	}
	confirm(user.WaitingApproval)
	states("active/waitingApproval")
	_, before := s.told("u1")
	for _, value := range []string{user.ManuelApproved, user.ManuelApproved} {
		confirm(value)
		states("active/approved")
	}
	_, sent := s.told("u1")
	storetest.Equal(t, len(sent), len(before)+2) // one decision, by mail and SMS
	confirm(user.Rejected)
	states("deActive/rejected")
	proof := s.add("u1", 4, docPDF) // a typed document comes first
	confirm(user.ManuelApproved)
	states("active/approved")
	storetest.Equal(t, s.state(proof), "active/approved")
}
