package kyc_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
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
	x, err := d.Documents.Get(d.t.Context(), id)
	storetest.Must(d.t, err)
	return x.Status + " " + *x.Reason
}

func (d *desk) user(id string) user.User {
	d.t.Helper()
	u, err := d.Users.Get(d.t.Context(), id)
	storetest.Must(d.t, err)
	return u
}

// took returns the messages to users so far, and clears them.
func (d *desk) took() string {
	defer func() { d.told = nil }()
	return strings.Join(d.told, "; ")
}

var by = audit.By{UserID: "boss", IP: "192.0.2.1"}

// An approval is one unit: account, documents, decision and the message to the user.
func TestApprove(t *testing.T) {
	d := newDesk(t)
	a, b, c := d.document("a", "u1", 1, "png"), d.document("b", "u1", 2, "png"), d.document("c", "u1", 4, "png")
	v := kyc.Verdict{UserID: "u1", KYCConfirm: user.ManuelApproved, DocumentIDs: []string{a, b}, DocumentID: a,
		Reason: new("ignored"), Reasons: map[string]any{"tr": "yok"}}
	storetest.Must(t, d.Decide(t.Context(), by, v))
	if got := d.state(a) + ", " + d.state(b) + ", " + d.state(c); got !=
		"active approved, active approved, active waitingApproval" || d.user("u1").KYCConfirm != user.ManuelApproved {
		t.Errorf("%s, %s", got, d.user("u1").KYCConfirm)
	}
	last, err := d.Store.Last(t.Context(), "u1", kyc.Identity)
	storetest.Must(t, err)
	last.At = last.At.UTC()
	storetest.Same(t, last, kyc.Decision{UserID: "u1", Kind: kyc.Identity, Value: user.ManuelApproved, DocumentID: a,
		DecidedBy: "boss", At: d.now})
	if got := d.took(); got != "u1 kyc kyc-approved  192.0.2.1 [MAIL]" {
		t.Error(got)
	}
	storetest.Wants(t, d.Decide(t.Context(), by, v), fault.InvalidState)
	published, err := kit.NewIntegration(d.db).Events(t.Context(), integration.EventQuery{},
		page.Query[integration.Place]{Limit: 10})
	storetest.Must(t, err)
	if all := published.Records; len(all) != 1 || all[0].Type != integration.KYCDecided || all[0].UserID != "u1" ||
		!maps.Equal(all[0].Data, map[string]string{"kycConfirm": user.ManuelApproved,
			"previousKycConfirm": user.WaitingApproval, "documentId": a}) {
		t.Errorf("published %+v", all)
	}
	storetest.Same(t, persistencetest.Acts(t, d.db),
		[]string{"KYC_UPDATE|boss|u1|u1|kycConfirm=waitingApproval -> manuelApproved"})
}

// A rejection has a reason, which is sent in the language of the user.
func TestReject(t *testing.T) {
	for language, want := range map[string]string{"": "bulanık", "ar": "غير واضح", "en": "blurred", "de": "blurred"} {
		d := newDesk(t)
		a := d.document("a", "u1", 1, "png")
		persistencetest.Exec(t, d.db, "UPDATE users SET language = ? WHERE id = 'u1'", language)
		v := kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected, DocumentIDs: []string{a}, DocumentID: a,
			Reason:  new("plain"),
			Reasons: map[string]any{"tr": "bulanık", "en": " blurred ", "ar": "غير واضح", "code": 7}}
		storetest.Must(t, d.Decide(t.Context(), by, v))
		if got := d.took(); got != "u1 kyc kyc-rejected "+want+" 192.0.2.1 [MAIL]" {
			t.Errorf("%s: %s", language, got)
		}
		last, err := d.Store.Last(t.Context(), "u1", kyc.Identity)
		if err != nil || last.Reason != "plain" || last.Reasons["code"] == nil || d.state(a) != "deActive rejected" {
			t.Errorf("%+v, %v, %s", last, err, d.state(a))
		}
	}
	d := newDesk(t)
	a := d.document("a", "u1", 1, "png")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected,
		DocumentIDs: []string{a}, DocumentID: a, Reason: new(" plain "), Reasons: map[string]any{"ar": " ", "tr": 5}}))
	if got := d.took(); got != "u1 kyc kyc-rejected plain 192.0.2.1 [MAIL]" {
		t.Error(got)
	}
}

// Each problem of a verdict is named, and documents must be the user's.
func TestVerdictIsValidated(t *testing.T) {
	d := newDesk(t)
	a, other := d.document("a", "u1", 1, "png"), d.document("o", "u2", 1, "png")
	long := strings.Repeat("ü", 2000)
	for name, c := range map[string]struct {
		edit func(v *kyc.Verdict)
		want string
	}{
		"waiting":   {func(v *kyc.Verdict) { v.KYCConfirm = user.WaitingApproval }, "kycConfirm"},
		"no reason": {func(v *kyc.Verdict) { v.Reason = nil }, "rejectedResult"},
		"blank":     {func(v *kyc.Verdict) { v.Reason = new(" ") }, "rejectedResult"},
		"long":      {func(v *kyc.Verdict) { v.Reason = new(long + "x") }, "rejectedResult"},
		"long text": {func(v *kyc.Verdict) { v.Reasons = map[string]any{"ar": long + "x", "tr": long + "x"} },
			"rejectedResultJson"},
		"nothing":  {func(v *kyc.Verdict) { v.DocumentIDs = nil }, "userDocumentId"},
		"foreign":  {func(v *kyc.Verdict) { v.DocumentIDs = []string{a, other} }, "userDocumentId"},
		"foreign2": {func(v *kyc.Verdict) { v.DocumentID = other }, "documentId"},
		"both":     {func(v *kyc.Verdict) { v.DocumentID, v.DocumentIDs = "x", []string{"y"} }, "userDocumentId documentId"},
	} {
		v := kyc.Verdict{UserID: "u1", KYCConfirm: user.Rejected, DocumentIDs: []string{a}, DocumentID: a, Reason: &long,
			Reasons: map[string]any{"tr": long}}
		c.edit(&v)
		err := d.Decide(t.Context(), by, v)
		t.Run(name, func(t *testing.T) { storetest.WantsFields(t, err, c.want) })
	}
	v := kyc.Verdict{UserID: "nobody", KYCConfirm: user.ManuelApproved, DocumentIDs: []string{a}, DocumentID: a}
	storetest.Wants(t, d.Decide(t.Context(), by, v), fault.RecordNotFound)
	if d.user("u1").KYCConfirm != user.WaitingApproval || d.took() != "" {
		t.Error("a refused verdict changed something")
	}
	v.UserID = "u1"
	persistencetest.Fails(t, d.db, "users document account_decision audit", func(ctx context.Context) error {
		return d.Decide(ctx, by, v)
	})
}

// A decision on the address sets the status of the documents that prove it, and may be made again.
func TestConfirmAddress(t *testing.T) {
	d := newDesk(t)
	confirm := func(value, description string) {
		t.Helper()
		d.now = d.now.Add(time.Second)
		storetest.Must(t, d.Confirm(t.Context(), by, "u1", value, description))
	}
	a := d.document("a", "u1", 4, "png")
	front := d.document("f", "u1", 1, "png")
	confirm(user.ManuelApproved, " ")
	if d.state(a) != "active approved" || d.state(front) != "active waitingApproval" ||
		d.user("u1").AddressConfirmed != user.ManuelApproved {
		t.Errorf("%s, %s, %s", d.state(a), d.state(front), d.user("u1").AddressConfirmed)
	}
	if got := d.took(); got != "u1 kyc address-approved  192.0.2.1 [MAIL SMS]" {
		t.Error(got)
	}
	confirm(user.ManuelApproved, "") // again, which changes nothing
	if d.took() != "" || len(persistencetest.Acts(t, d.db)) != 1 {
		t.Error("the same decision was made twice")
	}
	confirm(user.Rejected, " too old ")
	if got := d.took(); got != "u1 kyc address-rejected too old 192.0.2.1 [MAIL SMS]" || d.state(a) != "deActive too old" {
		t.Errorf("%s, %s", got, d.state(a))
	}
	confirm(user.Rejected, "") // for another reason
	if got := d.took(); got == "" || d.state(a) != "deActive rejected" {
		t.Errorf("%s, %s", got, d.state(a))
	}
	b := d.document("b", "u1", 4, "png")
	confirm(user.Rejected, "") // the same, with one more document
	if got := d.took(); got == "" || d.state(b) != "deActive rejected" {
		t.Errorf("%s, %s", got, d.state(b))
	}
	confirm(user.WaitingApproval, "later")
	if got := d.took(); got != "" || d.state(b) != "deActive rejected" ||
		d.user("u1").AddressConfirmed != user.WaitingApproval {
		t.Errorf("%s, %s, %s", got, d.state(b), d.user("u1").AddressConfirmed)
	}
	last, err := d.Store.Last(t.Context(), "u1", kyc.Address)
	storetest.Must(t, err)
	last.At = last.At.UTC()
	storetest.Same(t, last, kyc.Decision{UserID: "u1", Kind: kyc.Address, Value: user.WaitingApproval, Reason: "later",
		DecidedBy: "boss", At: d.now})
	long := strings.Repeat("ü", 2000)
	confirm(user.WaitingApproval, long)
	storetest.WantsFields(t, d.Confirm(t.Context(), by, "u1", user.Rejected, long+"x"), "addressDescription")
	storetest.Wants(t, d.Confirm(t.Context(), by, "nobody", user.Rejected, ""), fault.RecordNotFound)
	acts := persistencetest.Acts(t, d.db)
	if got := acts[1]; len(acts) != 6 || got != "ADDRESS_CONFIRM|boss|u1|u1|addressConfirmed=manuelApproved -> rejected" {
		t.Errorf("%v", acts)
	}
	persistencetest.Fails(t, d.db, "users document account_decision audit", func(ctx context.Context) error {
		return d.Confirm(ctx, by, "u1", user.Rejected, "why")
	})
}

// The pictures of a case are previews of the newest document of each type; viewing those of other users is audited.
func TestImages(t *testing.T) {
	d := newDesk(t)
	images := func(who string) string {
		t.Helper()
		all, err := d.Images(t.Context(), audit.By{UserID: who}, "u1")
		storetest.Must(t, err)
		shown := func(p *picture.Picture) bool { return p != nil && len(p.Bytes) > 0 }
		return fmt.Sprint(all.DocumentID, shown(all.Front), shown(all.Back), shown(all.Selfie))
	}
	if got := images("boss"); got != "false false false" || len(persistencetest.Acts(t, d.db)) != 0 {
		t.Errorf("%s, %v", got, persistencetest.Acts(t, d.db))
	}
	d.document("D1", "u1", 9, "png")
	persistencetest.Exec(t, d.db, `INSERT INTO account_decision (user_id, kind, value, document_id, reason, reasons,
		decided_by, created_at) VALUES ('u1', 'kyc', 'rejected', 'D1', '', '{}', 'boss', 1)`)
	if got := images("u1"); got != "D1true false false" {
		t.Errorf("the decided document stands for the front: %s", got)
	}
	d.document("D2", "u1", 1, "broken")
	d.document("D3", "u1", 2, "pdf")
	d.document("D4", "u2", 3, "png")
	if got := images("u1"); got != "D3false false false" || len(persistencetest.Acts(t, d.db)) != 0 {
		t.Errorf("%s, %v", got, persistencetest.Acts(t, d.db))
	}
	d.document("D5", "u1", 1, "png")
	d.document("D6", "u1", 2, "png")
	d.document("D7", "u1", 3, "png")
	if got := images("boss"); got != "D7true true true" {
		t.Error(got)
	}
	storetest.Same(t, persistencetest.Acts(t, d.db), []string{"KYC_IMAGES_READ|boss|u1|D7|"})
	_, err := d.Images(t.Context(), by, "nobody")
	storetest.Wants(t, err, fault.RecordNotFound)
	persistencetest.Fails(t, d.db, "users document audit", func(ctx context.Context) error {
		_, err := d.Images(ctx, by, "u1")
		return err
	})
	d.document("D8", "u1", 3, "lost")
	if _, err := d.Images(t.Context(), by, "u1"); err == nil {
		t.Error("no error of bytes that cannot be read")
	}
}

// A case is the account, the results of its checks, and the last decision on its identity.
func TestCase(t *testing.T) {
	d := newDesk(t)
	c, err := d.Case(t.Context(), "u1")
	if err != nil || c.User.ID != "u1" || !*c.Checks.Number || c.Last != nil {
		t.Errorf("%+v, %v", c, err)
	}
	a := d.document("a", "u1", 1, "png")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.ManuelApproved,
		DocumentIDs: []string{a}, DocumentID: a}))
	if c, err = d.Case(t.Context(), "u1"); err != nil || c.Last == nil || c.Last.Value != user.ManuelApproved {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = d.Case(t.Context(), "nobody")
	storetest.Wants(t, err, fault.RecordNotFound)
	persistencetest.Fails(t, d.db, "users account_decision", func(ctx context.Context) error {
		_, err := d.Case(ctx, "u1")
		return err
	})
	d.checks = errors.New("no key")
	if _, err := d.Case(t.Context(), "u1"); !errors.Is(err, d.checks) {
		t.Error(err)
	}
	if !slices.Contains(persistencetest.Acts(t, d.db),
		"KYC_UPDATE|boss|u1|u1|kycConfirm=waitingApproval -> manuelApproved") {
		t.Error("the decision has no row in the audit")
	}
}
