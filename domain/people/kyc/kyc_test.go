package kyc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/people/document"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// desk is the service with the users u1 and u2. The file name of a document determines its content.
type desk struct {
	*kyc.Service
	t      *testing.T
	db     *persistence.DB
	now    time.Time
	told   []string
	checks error
	values func() *parameter.Set
}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	d := &desk{t: t, db: db, now: time.UnixMilli(1_700_000_000_000).UTC(),
		values: parameter.NewCache(kit.NewParameters(db)).Set}
	d.Service = &kyc.Service{Store: people.NewDecisions(db), Users: account.NewUsers(db),
		Documents: people.NewDocuments(db), Originals: d, Pictures: picture.NewDecoder(), Language: "tr",
		Levels: money.NewLevels(db), Values: d.values,
		Types:   kyc.Types{Front: 1, Back: 2, Selfie: 3, Address: 4},
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return d.now }},
		Checks: func(context.Context, user.User) (identity.Checks, error) {
			return identity.Checks{Number: new(true)}, d.checks
		},
		Notify: func(to challenge.Account, topic, template string, v message.Values, ip string,
			on ...challenge.Name) []commit.Write {
			d.told = append(d.told, fmt.Sprint(to.UserID, " ", topic, " ", template, " ", v["reason"], " ", ip, " ", on))
			return nil
		}}
	for _, id := range []string{"u1", "u2"} {
		u := user.New(id, d.now)
		u.Email = id + "@example.com"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	return d
}

func (d *desk) Content(_ context.Context, x document.Document) ([]byte, error) {
	switch x.Name {
	case "png":
		return picturetest.PNG(40, 20), nil
	case "broken":
		return []byte("no picture"), nil
	}
	return nil, errors.New("no bytes")
}

// document adds a document of a type.
func (d *desk) document(id, userID string, kind int64, name string) string {
	d.t.Helper()
	media := "image/png"
	if name == "pdf" {
		media = document.PDF
	}
	storetest.Must(d.t, d.Documents.Add(d.t.Context(), document.Document{ID: id, UserID: userID, Name: name, Type: kind,
		MimeType: media, Status: document.Active, Reason: new(document.WaitingApproval), Path: "document/" + id, Size: 1,
		CreatedAt: d.now}, 1, 1000))
	return id
}

// state returns the status and the reason of a document.
func (d *desk) state(id string) string {
	d.t.Helper()
	x := storetest.Value(d.Documents.Get(d.t.Context(), id))(d.t)
	return x.Status + " " + *x.Reason
}

func (d *desk) user(id string) user.User {
	d.t.Helper()
	return storetest.Value(d.Users.Get(d.t.Context(), id))(d.t)
}

// took returns the messages to users so far, and clears them.
func (d *desk) took() string {
	defer func() { d.told = nil }()
	return strings.Join(d.told, "; ")
}

var by = audit.By{UserID: "boss", IP: "192.0.2.1"}

// raisesTo sets the parameter KYC_LEVEL.
func (d *desk) raisesTo(object parameter.Reached) {
	d.t.Helper()
	store := kit.NewParameters(d.db)
	storetest.Must(d.t, d.db.InTx(d.t.Context(), func(ctx context.Context) error {
		if err := parameter.Seed(ctx, store); err != nil {
			return err
		}
		return parameter.KYCLevel.Change(ctx, store, func(parameter.Reached) (parameter.Reached, error) {
			return object, nil
		})
	}))
	live := parameter.NewCache(store)
	storetest.Must(d.t, live.Reload(d.t.Context()))
	d.Values = live.Set
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
				d := newDesk(t)
				d.raisesTo(c.to)
				storetest.Must(t, d.Levels.Add(t.Context(), level.Level{ID: 12, Label: "Twelve"}))
				storetest.Must(t, d.db.Commit(t.Context(), user.SetLevel{UserID: "u1", Level: c.has}))
				paper := d.document("f", "u1", 1, "png")
				decide := func() {
					if c.identity == "" {
						return
					}
					v := kyc.Verdict{UserID: "u1", KYCConfirm: c.identity, DocumentIDs: []string{paper}, DocumentID: paper}
					if c.identity == user.Rejected {
						v.Reason = new("blurred")
					}
					storetest.Must(t, d.Decide(t.Context(), by, v))
				}
				confirm := func() { storetest.Must(t, d.Confirm(t.Context(), by, "u1", c.street, "")) }
				steps := []func(){decide, confirm}
				if !identityFirst {
					slices.Reverse(steps)
				}
				steps[0]()
				storetest.Equal(t, d.user("u1").Level, c.has)
				steps[1]()
				storetest.Equal(t, d.user("u1").Level, c.want)
				acts := strings.Join(persistencetest.Acts(t, d.db), "\n")
				if got := strings.Count(acts, "USER_LEVEL|boss|u1|u1|"); got == 1 != (c.has != c.want) {
					t.Errorf("audited\n%s", acts)
				}
			})
		}
	}
}

// broken is a store that fails to list levels.
type broken struct{ level.Store }

func (broken) List(context.Context, level.Query) ([]level.Level, error) {
	return nil, errors.New("broken")
}

// The level is part of the decision's unit: if it cannot be set, nothing is decided.
func TestDecisionFailsWithItsLevel(t *testing.T) {
	d := newDesk(t)
	d.raisesTo(parameter.Reached{LevelID: new(int64(1))})
	paper := d.document("f", "u1", 1, "png")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.ManuelApproved,
		DocumentIDs: []string{paper}, DocumentID: paper}))
	levels := d.Levels
	d.Levels = broken{levels}
	storetest.Fails(t, d.Confirm(t.Context(), by, "u1", user.ManuelApproved, ""), "", "decided without the level")
	if u := d.user("u1"); u.AddressConfirmed != user.WaitingApproval || u.Level != 0 {
		t.Errorf("half a decision: %+v", u)
	}
	d.Levels = levels
	storetest.Must(t, d.Confirm(t.Context(), by, "u1", user.ManuelApproved, ""))
	if u := d.user("u1"); u.AddressConfirmed != user.ManuelApproved || u.Level != 1 {
		t.Errorf("after the repetition: %+v", u)
	}
}

// A rejected account waits again when its user uploads an identity document, and only then.
func TestUploadReopens(t *testing.T) {
	d := newDesk(t)
	papers := &document.Service{Store: d.Documents, Users: d.Users, Files: persistencetest.Files(t),
		Pictures: picture.NewDecoder(), Ring: keyringtest.Ring(t, d.Changes.Now), Changes: d.Changes, Quota: 1 << 20,
		Values: parameter.NewCache(kit.NewParameters(d.db)).Set, Follows: d.Reopens}
	for _, c := range []struct {
		by, userID string
		kind       int64
		was, want  string
	}{
		{"u1", "u1", document.Unclassified, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Front, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Back, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Selfie, user.Rejected, user.WaitingApproval},
		{"u1", "u1", d.Types.Address, user.Rejected, user.Rejected},
		{"boss", "u1", d.Types.Front, user.Rejected, user.Rejected},
		{"u1", "u1", d.Types.Front, user.ManuelApproved, user.ManuelApproved},
		{"u1", "u1", d.Types.Front, user.WaitingApproval, user.WaitingApproval},
		{"u2", "u2", d.Types.Front, user.Rejected, user.Rejected}, // of u1
	} {
		persistencetest.Exec(t, d.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", c.was)
		reopens := "KYC_REOPEN|" + c.by + "|u1|u1|kycConfirm=rejected -> waitingApproval"
		before := count(persistencetest.Acts(t, d.db), reopens)
		added, err := papers.Add(t.Context(), audit.By{UserID: c.by}, document.Document{UserID: c.userID, Type: c.kind,
			Name: "a.pdf"}, []byte("%PDF-1.7"), document.Fields{})
		storetest.Must(t, err)
		got := d.user("u1").KYCConfirm
		rows := count(persistencetest.Acts(t, d.db), reopens) - before
		if got != c.want || rows == 1 != (c.was == user.Rejected && c.want == user.WaitingApproval) ||
			d.state(added.ID) != "active waitingApproval" {
			t.Errorf("%+v: %s, %d rows, %s", c, got, rows, d.state(added.ID))
		}
	}
	// A document that fails to be stored reopens nothing.
	persistencetest.Exec(t, d.db, "UPDATE users SET kyc_confirm = ? WHERE id = 'u1'", user.Rejected)
	papers.Quota = 400 << 10
	for n := range 20 {
		_, err := papers.Add(t.Context(), audit.By{UserID: "boss"}, document.Document{UserID: "u1", Type: 4,
			Name: fmt.Sprint(n, ".pdf")}, []byte("%PDF-1.7"), document.Fields{})
		if fault.CodeOf(err) == fault.RecordLimitReached {
			break
		}
		storetest.Must(t, err)
	}
	_, err := papers.Add(t.Context(), audit.By{UserID: "u1"}, document.Document{UserID: "u1", Type: 1, Name: "a.pdf"},
		[]byte("%PDF-1.7"), document.Fields{})
	if storetest.Wants(t, err, fault.RecordLimitReached); d.user("u1").KYCConfirm != user.Rejected {
		t.Error("reopened without a document")
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// The operator reopens a rejected identity, once, and it can be decided on again.
func TestReopen(t *testing.T) {
	d := newDesk(t)
	reopen := func(id string) error { return kyc.Reopen(t.Context(), d.Users, d.Changes, audit.Operator, id) }
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
	storetest.Wants(t, reopen("u9"), fault.RecordNotFound)
	a := d.document("a", "u1", 1, "png")
	v := kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected, DocumentIDs: []string{a}, DocumentID: a,
		Reason: new("blurred")}
	storetest.Must(t, d.Decide(t.Context(), by, v))
	won := storetest.Race(t, 8, fault.InvalidState, func(int) error { return reopen("u1") })
	storetest.Equal(t, won, 1)
	storetest.Equal(t, d.user("u1").KYCConfirm, user.WaitingApproval)
	v.KYCConfirm = user.ManuelApproved
	storetest.Must(t, d.Decide(t.Context(), by, v))
	storetest.Wants(t, reopen("u1"), fault.InvalidState)
}

// If no document has the type, the newest waiting picture without a type is shown, and each for one type only.
func TestImagesWithoutType(t *testing.T) {
	d := newDesk(t)
	shows := func(want string) {
		t.Helper()
		all := storetest.Value(d.Images(t.Context(), by, "u1"))(t)
		shown := func(p *picture.Picture) bool { return p != nil }
		got := fmt.Sprint(all.DocumentID, " ", shown(all.Front), shown(all.Back), shown(all.Selfie))
		storetest.Equal(t, got, want)
	}
	d.document("D1", "u1", 0, "png")
	d.document("D2", "u1", 0, "pdf") // not a picture
	d.document("D3", "u1", 5, "png") // of another type
	d.document("D4", "u2", 0, "png") // of another user
	shows("D1 true false false")
	d.document("D5", "u1", 0, "png")
	shows("D5 true true false")
	d.document("D6", "u1", 0, "png")
	shows("D6 true true true")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected,
		DocumentIDs: []string{"D6", "D5"}, DocumentID: "D6", Reason: new("blurred")}))
	shows("D6 true true false") // the decided one, and D1 as the back
	storetest.Must(t, kyc.Reopen(t.Context(), d.Users, d.Changes, by, "u1"))
	shows("D1 true false false") // waiting documents come first
	d.document("D7", "u1", 1, "png")
	shows("D7 true true false") // a typed document comes first
	d.document("D8", "u1", 1, "broken")
	shows("D8 false true false")
	d.document("D9", "u1", 1, "lost")
	storetest.Fails(t, storetest.Err(d.Images(t.Context(), by, "u1")), "", "no error of bytes that cannot be read")
}

// A decision on an address without a proof uses the newest waiting picture, once.
func TestAddressProofWithoutType(t *testing.T) {
	d := newDesk(t)
	confirm := func(value string) {
		t.Helper()
		d.now = d.now.Add(time.Second)
		storetest.Must(t, d.Confirm(t.Context(), by, "u1", value, ""))
	}
	confirm(user.ManuelApproved) // nothing waits
	a, b := d.document("a", "u1", 0, "png"), d.document("b", "u1", 0, "png")
	c, other := d.document("c", "u1", 0, "pdf"), d.document("d", "u2", 0, "png")
	confirm(user.WaitingApproval)
	all := func() string { return d.state(a) + ", " + d.state(b) + ", " + d.state(c) + ", " + d.state(other) }
	const waits = "active waitingApproval"
	storetest.Equal(t, all(), waits+", "+waits+", "+waits+", "+waits)
	d.took()
	for _, value := range []string{user.ManuelApproved, user.ManuelApproved} {
		confirm(value)
		storetest.Equal(t, all(), waits+", active approved, "+waits+", "+waits)
	}
	storetest.Equal(t, d.took(), "u1 kyc address-approved  192.0.2.1 [MAIL SMS]")
	confirm(user.Rejected)
	storetest.Equal(t, all(), waits+", deActive rejected, "+waits+", "+waits)
	proof := d.document("e", "u1", 4, "png") // a typed document comes first
	confirm(user.ManuelApproved)
	storetest.Equal(t, all()+", "+d.state(proof), waits+", active approved, "+waits+", "+waits+", active approved")
	d.document("f", "u2", 0, "png")
}
