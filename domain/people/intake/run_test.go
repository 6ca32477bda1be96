package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
	"castellan/domain/proof/totp"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// secret is the password of every hash of the tests.
const secret = "correct horse 42"

// desk is a database with the service that imports into it.
type desk struct {
	*intake.Service
	db   *persistence.DB
	ring *keyring.Ring
}

func newDesk(t *testing.T, db *persistence.DB) desk {
	t.Helper()
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	storetest.Must(t, err)
	ring := keyringtest.Ring(t, time.Now)
	return desk{&intake.Service{Store: people.NewIntake(db), Commit: db, Hasher: hasher, Ring: ring,
		Users: account.NewUsers(db), TOTP: proof.NewTOTP(db), Now: time.Now, MaxCost: 300_000,
		Statuses: []string{"active", "passive", "blocked", "closed", "vip"}}, db, ring}
}

func (d desk) load(t *testing.T, importID, text string, dry bool) (intake.State, error) {
	t.Helper()
	source := storetest.Value(intake.Open(intake.Castellan, strings.NewReader(text), firebase))(t)
	return d.Run(t.Context(), importID, source, dry)
}

func (d desk) refusals(t *testing.T, importID string) (all []string) {
	t.Helper()
	storetest.Must(t, d.AllRefusals(t.Context(), importID, func(r intake.Refusal) error {
		all = append(all, fmt.Sprintf("%d %s", r.Line, r.Reason))
		return nil
	}))
	return all
}

func (d desk) count(t *testing.T, table string) (n int) {
	t.Helper()
	storetest.Must(t, d.db.Conn(t.Context()).NewSelect().Table(table).ColumnExpr("COUNT(*)").Scan(t.Context(), &n))
	return n
}

func (d desk) export(t *testing.T, secrets bool) []string {
	t.Helper()
	var b strings.Builder
	n, err := d.Export(t.Context(), &b, secrets)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if storetest.Must(t, err); n != int64(len(lines)) {
		t.Errorf("%d lines, %d reported", len(lines), n)
	}
	slices.Sort(lines)
	return lines
}

// both runs a test on both databases.
func both(t *testing.T, test func(t *testing.T, d desk)) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, newDesk(t, db)) })
}

const mixed = `{"externalId":"x1","email":"A@Example.test","emailVerified":true,` +
	`"countryCode":"+90","phoneNumber":"0532 123 45 67",` +
	`"name":" Ada  King ","surname":"Lovelace","language":"en","status":"vip",` +
	`"hash":"{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0",` +
	`"totpSecret":"gezd gnbv gy3t qojq gezd gnbv gy3t qojq"}
{"email":"a@example.test"}
{"email":"b@example.test","countryCode":"90","phoneNumber":"5321234567"}
{"email":"c@example.test","externalId":"x1"}
{"email":"d@example.test","hash":"$2b$31$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"}
{"name":"None"}
{"email":"e@exa mple","countryCode":"90","phoneNumber":"12","language":"de",` +
	`"status":"god","totpSecret":"1","externalId":"\u0000"}
{"email":"taken@example.test"}
{"countryCode":"90","phoneNumber":"0000000001"}
{"email":"f@example.test","name":"\u202eevil"}
{"email":"g@example.test"}
`

// Users come with everything that the file knows. Faulty and taken lines are refused by number and the others are
// added. A repetition changes nothing, and a dry run changes nothing and judges alike.
func TestImport(t *testing.T) {
	both(t, func(t *testing.T, d desk) {
		before := user.New("u0", time.UnixMilli(1))
		before.Email = "taken@example.test"
		storetest.Must(t, d.db.Commit(t.Context(), user.Add{User: before}))
		want := []string{"2 email is already used by an account or an earlier line",
			"3 phoneNumber is already used by an account or an earlier line",
			"4 externalId is already used by an account or an earlier line",
			"5 hash: the cost of the hash is out of bounds", "6 email or a phone number is required",
			"7 email must be a mail address; phoneNumber is too short or too long; " +
				"externalId must not contain control characters; " +
				"language must be tr, en or ar; status must be a status of an account; totpSecret must be base32 of 10 to 64 bytes",
			"8 email is already used by an account or an earlier line",
			"9 phoneNumber is too short or too long", "10 name must not contain control characters"}
		var dry []string
		d.Refused = func(r intake.Refusal) { dry = append(dry, fmt.Sprintf("%d %s", r.Line, r.Reason)) }
		state, err := d.load(t, "one", mixed, true)
		if err != nil || state.Imported != 2 || state.Refused != 9 || !slices.Equal(dry, want) {
			t.Errorf("dry: %+v, %v\n%s", state, err, strings.Join(dry, "\n"))
		}
		for _, table := range []string{"user_import", "user_import_refusal", "totp", "integration_claim", "hash_kind",
			"audit"} {
			storetest.Equal(t, d.count(t, table), 0, table)
		}
		for range 2 {
			state, err = d.load(t, "one", mixed, false)
			if got := d.refusals(t, "one"); err != nil || state.Imported != 2 || state.Refused != 9 || !state.Done ||
				!slices.Equal(got, want) {
				t.Errorf("%+v, %v\n%s", state, err, strings.Join(got, "\n"))
			}
		}
		if users, audits := d.count(t, "users"), d.count(t, "audit"); users != 3 || audits != 1 {
			t.Errorf("%d users, %d audit rows", users, audits)
		}
		u := storetest.Value(d.Users.ByEmail(t.Context(), "a@example.test"))(t)
		if u.Phone != "+905321234567" || u.CountryCode != "90" || u.Name != "Ada King" || u.Surname != "Lovelace" ||
			u.Language != "en" || u.Status != "vip" || !u.EmailVerified || !u.TOTP || len(u.Roles) != 0 {
			t.Errorf("%+v", u)
		}
		stored := storetest.Value(d.Users.Secret(t.Context(), u.ID))(t)
		right, stale, err := d.Hasher.Verify(t.Context(), secret, stored.Hash)
		if !right || !stale || err != nil || strings.Contains(stored.Hash, "3HYXY1RXiZmbOpJr8U2NBIVfc") {
			t.Errorf("%s: right %v, stale %v, %v", stored.Hash, right, stale, err)
		}
		definition := storetest.Value(d.TOTP.Get(t.Context(), u.ID))(t)
		storetest.Equal(t, string(storetest.Value(totp.Reveal(d.ring, definition))(t)), "12345678901234567890")
		kinds, err := account.NewHashKinds(d.db).Portions(t.Context(), 9)
		if len(kinds) != 1 || kinds[0].Accounts != 1 || kinds[0].Kind.String() != "digest$h=sha1,o=ps+m=64,t=1,p=1" ||
			err != nil {
			t.Errorf("kinds %v, %v", kinds, err)
		}
	})
}

// many returns a file of n users, the third of every ten refused.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		address := fmt.Sprintf("u%d@example.test", i)
		if i%10 == 2 {
			address = "u0@example.test"
		}
		fmt.Fprintf(&b, `{"email":%q,"externalId":"x%d"}`+"\n", address, i)
	}
	return b.String()
}

// flaky fails the commit with a number, before or after it took place.
type flaky struct {
	commit.Committer
	left  *int
	after bool
}

var errKilled = errors.New("killed")

func (f flaky) Commit(ctx context.Context, writes ...commit.Write) error {
	*f.left--
	if *f.left == 0 && !f.after {
		return errKilled
	}
	err := f.Committer.Commit(ctx, writes...)
	if *f.left == 0 && err == nil {
		return errKilled
	}
	return err
}

// An import that ends at any batch, before or after its commit, continues behind it. No user is lost and none is made
// twice. The counters and refusals are those of an undisturbed import.
func TestImportResumes(t *testing.T) {
	text := many(2200)
	both(t, func(t *testing.T, d desk) {
		for _, after := range []bool{false, true} {
			left := 3
			d.Commit = flaky{d.db, &left, after}
			storetest.Is(t, storetest.Err(d.load(t, "one", text, false)), errKilled)
		}
		d.Commit = d.db
		state, err := d.load(t, "one", text, false)
		users, claims, refused := d.count(t, "users"), d.count(t, "integration_claim"), len(d.refusals(t, "one"))
		if err != nil || !state.Done || state.Cursor != 2200 || state.Imported != 1980 || users != 1980 || claims != 1980 ||
			state.Refused != 220 || refused != 220 {
			t.Errorf("%+v, %v: %d users, %d claims, %d refusals", state, err, users, claims, refused)
		}
	})
}

// Of several processes that import one file at once, each batch is committed by one of them; the others stop. A last
// run completes what is left.
func TestConcurrentImports(t *testing.T) {
	text := many(3000)
	both(t, func(t *testing.T, d desk) {
		results := make(chan error, 4)
		for range 4 {
			go func() {
				source, err := intake.Open(intake.Castellan, strings.NewReader(text), firebase)
				if err == nil {
					_, err = d.Run(t.Context(), "one", source, false)
				}
				results <- err
			}()
		}
		for range 4 {
			if err := <-results; err != nil && fault.CodeOf(err) != fault.InvalidState {
				t.Error(err)
			}
		}
		state, err := d.load(t, "one", text, false)
		if users := d.count(t, "users"); err != nil || !state.Done || state.Imported != 2700 || users != 2700 {
			t.Errorf("%+v, %v: %d users", state, err, users)
		}
	})
}

// racing makes an account with a name of the batch between the check and the commit.
type racing struct {
	commit.Committer
	once *bool
}

func (r racing) Commit(ctx context.Context, writes ...commit.Write) error {
	if !*r.once {
		*r.once = true
		u := user.New("u0", time.UnixMilli(1))
		u.Email = "u5@example.test"
		if err := r.Committer.Commit(ctx, user.Add{User: u}); err != nil {
			return err
		}
	}
	return r.Committer.Commit(ctx, writes...)
}

// An account that registers while its line is being imported keeps its address, and only that line is refused.
func TestRegistrationBesideImport(t *testing.T) {
	both(t, func(t *testing.T, d desk) {
		d.Commit = racing{d.db, new(bool)}
		text := strings.Replace(many(10), `"x7"`,
			`"x7","hash":"$2b$10$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"`, 1)
		state, err := d.load(t, "one", text, false)
		storetest.Equal(t, len(storetest.Value(account.NewHashKinds(d.db).Portions(t.Context(), 9))(t)), 1)
		want := []string{"3 email is already used by an account or an earlier line",
			"6 email is already used by an account or an earlier line"}
		if got := d.refusals(t, "one"); err != nil || state.Imported != 8 || !slices.Equal(got, want) {
			t.Errorf("%+v, %v, %v", state, err, got)
		}
	})
}

// An export into an empty database and its export are equal, with and without secrets; without them it has none.
func TestRoundTrip(t *testing.T) {
	text := mixed + `{"email":"h@example.test","hash":"$argon2id$v=19$m=7168,t=5,p=1$MDEyMzQ1Njc4OWFiY2RlZg$` +
		`MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}` + "\n" + many(700)
	for _, secrets := range []bool{true, false} {
		var first []string
		both(t, func(t *testing.T, d desk) {
			if first == nil {
				storetest.Must(t, storetest.Err(d.load(t, "one", text, false)))
				first = d.export(t, secrets)
				return
			}
			state, err := d.load(t, "two", strings.Join(first, "\n"), false)
			if err != nil || state.Refused != 0 || state.Imported != int64(len(first)) {
				t.Fatalf("%+v, %v, %v", state, err, d.refusals(t, "two"))
			}
			if second := d.export(t, secrets); !slices.Equal(first, second) {
				t.Errorf("the export of %d users differs:\n%s\n%s", len(first), first[0], second[0])
			}
		})
		whole := strings.Join(first, "\n")
		storetest.Equal(t, strings.Contains(whole, "argon2id"), secrets, whole)
		storetest.Equal(t, strings.Contains(whole, "GEZDGNBVGY3TQOJQ"), secrets, whole)
		if !json.Valid([]byte(first[0])) {
			t.Errorf("no JSON: %s", first[0])
		}
	}
}

// A document that breaks keeps the users before the break, and may be repaired: the new file is another import.
func TestBrokenDocument(t *testing.T) {
	both(t, func(t *testing.T, d desk) {
		source, err := intake.Open(intake.Firebase, strings.NewReader(`{"users":[{"email":"a@example.test"},{"email":`),
			firebase)
		storetest.Must(t, err)
		state, err := d.Run(t.Context(), "one", source, false)
		if err == nil || state.Imported != 1 || state.Done || d.count(t, "users") != 1 {
			t.Errorf("%+v, %v", state, err)
		}
	})
}
