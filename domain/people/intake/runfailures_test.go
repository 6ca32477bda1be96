package intake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
	"castellan/domain/proof/totp"
	"castellan/persistence/persistencetest"
)

func sqliteDesk(t *testing.T) desk {
	t.Helper()
	return newDesk(t, persistencetest.SQLite(t))
}

// A name has at most 200 characters.
func TestNameLengths(t *testing.T) {
	d := sqliteDesk(t)
	var text strings.Builder
	for i, field := range []string{"name", "surname"} {
		for _, n := range []int{199, 200, 201} {
			fmt.Fprintf(&text, `{"email":"u%d.%d@example.test",%q:%q}`+"\n", i, n, field, strings.Repeat("ğ", n))
		}
	}
	storetest.Must(t, storetest.Err(d.load(t, "one", text.String(), false)))
	storetest.Same(t, d.refusals(t, "one"), []string{"3 name is too long", "6 name is too long"})
}

// A phone number is that of the entry in international form, or of its two parts. Without an address only a number is
// needed.
func TestPhonesOfEntries(t *testing.T) {
	d := sqliteDesk(t)
	source, err := intake.Open(intake.Cognito, strings.NewReader("email,phone_number,email_verified\n"+
		",+905321234567,true\na@example.test,+90532,true\n"), firebase)
	storetest.Must(t, err)
	state := storetest.Value(d.Run(t.Context(), "one", source, false))(t)
	u := storetest.Value(d.Users.ByPhone(t.Context(), "+905321234567", ""))(t)
	if u.CountryCode != "90" || u.EmailVerified || u.Email != "" || state.Imported != 1 || state.Refused != 1 {
		t.Errorf("%+v, %+v", u, state)
	}
	if got := d.refusals(t, "one"); len(got) != 1 || !strings.HasPrefix(got[0], "3 phoneNumber ") {
		t.Errorf("%v", got)
	}
}

// sizes imports a file and returns the number of lines that each batch had.
func (d *desk) sizes(t *testing.T, text string) (sizes []int64) {
	t.Helper()
	last := int64(0)
	d.Progress = func(s intake.State) {
		sizes = append(sizes, s.Cursor-last)
		last = s.Cursor
	}
	storetest.Must(t, storetest.Err(d.load(t, "one", text, false)))
	return sizes
}

// A batch has at most 500 lines and at most 64 weak hashes.
func TestBatchSizes(t *testing.T) {
	for n, want := range map[int][]int64{499: {499}, 500: {500, 0}, 501: {500, 1}} {
		d := sqliteDesk(t)
		storetest.Same(t, d.sizes(t, many(n)), want, n)
		storetest.Equal(t, d.count(t, "audit"), len(want)-strings.Count(fmt.Sprint(want), " 0"))
	}
	var weak strings.Builder
	for i := range 65 {
		fmt.Fprintf(&weak, `{"email":"u%d@example.test","hash":"{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0"}`+"\n", i)
	}
	d := sqliteDesk(t)
	storetest.Same(t, d.sizes(t, weak.String()), []int64{64, 1})
}

// A rehearsal reports its progress, and ends with the file or with its caller.
func TestRehearsalEnds(t *testing.T) {
	d := sqliteDesk(t)
	var seen []int64
	ctx, cancel := context.WithCancel(t.Context())
	d.Progress = func(s intake.State) {
		if seen = append(seen, s.Cursor); len(seen) == 2 {
			cancel()
		}
	}
	source := storetest.Value(intake.Open(intake.Castellan, strings.NewReader(many(1700)), firebase))(t)
	state, err := d.Run(ctx, "one", source, true)
	if !errors.Is(err, context.Canceled) || !slices.Equal(seen, []int64{500, 1000}) || state.Done || state.Cursor != 1000 {
		t.Errorf("%+v, %v, %v", state, err, seen)
	}
	seen = nil
	source = storetest.Value(intake.Open(intake.Castellan, failing{strings.NewReader(many(3))}, firebase))(t)
	if state, err = d.Run(t.Context(), "one", source, true); !errors.Is(err, errDisk) || state.Cursor != 3 || state.Done {
		t.Errorf("%+v, %v", state, err)
	}
	if state, err = d.load(t, "one", many(3), true); err != nil || !state.Done || state.Imported != 2 ||
		state.Refused != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}

// An import that its caller ends stops after a batch. It goes on behind it, and refuses a file that is shorter.
func TestImportEndsWithItsCaller(t *testing.T) {
	d := sqliteDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.Progress, d.Pause = func(intake.State) { cancel() }, time.Hour
	source := storetest.Value(intake.Open(intake.Castellan, strings.NewReader(many(700)), firebase))(t)
	state, err := d.Run(ctx, "one", source, false)
	if !errors.Is(err, context.Canceled) || state.Cursor != 500 || state.Done || d.count(t, "users") != 450 {
		t.Errorf("%+v, %v", state, err)
	}
	d.Progress, d.Pause = nil, 0
	state, err = d.load(t, "one", many(499), false)
	if !errors.Is(err, io.EOF) || !strings.HasPrefix(fmt.Sprint(err), "the file is shorter than before") ||
		state.Cursor != 500 {
		t.Errorf("%+v, %v", state, err)
	}
	if state, err = d.load(t, "one", many(700), false); err != nil || state.Imported != 630 || !state.Done {
		t.Errorf("%+v, %v", state, err)
	}
}

// always answers every unit with one error.
type always struct {
	commit.Committer
	err   error
	units int
}

func (a *always) Commit(context.Context, ...commit.Write) error {
	a.units++
	return a.err
}

// A batch whose names are taken meanwhile is decided five times. Any other error of its unit ends the import at once.
func TestRefusedBatches(t *testing.T) {
	d := sqliteDesk(t)
	for name, c := range map[string]struct {
		answer error
		want   fault.Code
		units  int
	}{
		"taken":  {fault.New(fault.RecordAlreadyExist, "taken"), fault.Unavailable, 5},
		"fenced": {commit.ErrFenced, fault.InvalidState, 1},
		"other":  {fault.New(fault.RecordNotFound, "none"), fault.RecordNotFound, 1},
	} {
		units := &always{Committer: d.db, err: c.answer}
		d.Commit = units
		state, err := d.load(t, "one", many(3), false)
		if fault.CodeOf(err) != c.want || units.units != c.units || state.Cursor != 0 || state.Imported != 0 {
			t.Errorf("%s: %+v, %v after %d units", name, state, err, units.units)
		}
	}
}

// Every failed read ends an import and an export.
func TestImportWithoutTables(t *testing.T) {
	d := sqliteDesk(t)
	persistencetest.Fails(t, d.db, "user_import users integration_claim", func(ctx context.Context) error {
		source := storetest.Value(intake.Open(intake.Castellan, strings.NewReader(many(2)), firebase))(t)
		state, err := d.Run(ctx, "dry", source, true)
		if state.Done != (err == nil) {
			t.Errorf("%+v, %v", state, err)
		}
		return err
	})
	persistencetest.Fails(t, d.db, "user_import users integration_claim", func(ctx context.Context) error {
		source := storetest.Value(intake.Open(intake.Castellan, strings.NewReader(many(3)), firebase))(t)
		return storetest.Err(d.Run(ctx, "one", source, false))
	})
	persistencetest.Fails(t, d.db, "user_import_refusal", func(ctx context.Context) error {
		return d.AllRefusals(ctx, "one", func(intake.Refusal) error { return nil })
	})
	stop := errors.New("stop")
	storetest.Is(t, d.AllRefusals(t.Context(), "one", func(intake.Refusal) error { return stop }), stop)
	persistencetest.Fails(t, d.db, "users integration_claim", func(ctx context.Context) error {
		var b strings.Builder
		n, err := d.Export(ctx, &b, true)
		if want := int64(2); err == nil && (n != want || strings.Count(b.String(), "\n") != 2) || err != nil && n != 0 {
			t.Errorf("%d users, %q, %v", n, b.String(), err)
		}
		return err
	})
}

// A short export reports that its file takes no byte.
func TestShortExportFails(t *testing.T) {
	d := sqliteDesk(t)
	storetest.Must(t, storetest.Err(d.load(t, "one", many(2), false)))
	n, err := d.Export(t.Context(), full{}, false)
	if !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), "write the export: ") || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
}

// The refusals of an import are read in pages of 1000.
func TestManyRefusals(t *testing.T) {
	for _, n := range []int{999, 1000, 1001} {
		d := sqliteDesk(t)
		storetest.Must(t, storetest.Err(d.load(t, "one", strings.Repeat("{}\n", n), false)))
		got := d.refusals(t, "one")
		if len(got) != n || got[n-1] != fmt.Sprintf("%d email or a phone number is required", n) {
			t.Errorf("%d of %d refusals", len(got), n)
		}
	}
}

// full is a file that takes no byte.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errDisk }

// An export leaves out accounts of development, hashes of accounts that must reset their password, and authenticators
// that were removed meanwhile. It takes pages of 500 accounts, the newest first.
func TestExportedAccounts(t *testing.T) {
	d := sqliteDesk(t)
	_, err := d.load(t, "one", `{"email":"t@example.test","totpSecret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}`+"\n", false)
	storetest.Must(t, err)
	var writes []commit.Write
	for i := range 500 {
		u := user.New(fmt.Sprintf("A%03d", i), time.UnixMilli(1))
		u.Email = fmt.Sprintf("u%d@example.test", i)
		u.Demo, u.MustReset = i == 7, i == 8
		writes = append(writes, user.Add{User: u, PasswordHash: fmt.Sprint("hash-", i)})
	}
	storetest.Must(t, d.db.Commit(t.Context(), writes...))
	lines := d.export(t, true)
	all := strings.Join(lines, "\n")
	if len(lines) != 500 || strings.Contains(all, "u7@") || !strings.Contains(all, `"hash":"hash-9"`) ||
		strings.Contains(all, "hash-8\"") || !strings.Contains(all, "u8@") || strings.Count(all, "totpSecret") != 1 {
		t.Errorf("%d lines, %d secrets: %.400s", len(lines), strings.Count(all, "totpSecret"), all)
	}
	var b strings.Builder
	if _, err := d.Export(t.Context(), &b, false); err != nil || strings.Index(b.String(), "u499@") > strings.Index(
		b.String(), "u498@") || strings.Contains(b.String(), "hash-") || strings.Contains(b.String(), "totpSecret") {
		t.Errorf("without secrets: %v, %.200s", err, b.String())
	}
	if n, err := d.Export(t.Context(), full{}, false); !errors.Is(err, errDisk) ||
		!strings.HasPrefix(err.Error(), "write the export: ") || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
	for what, c := range map[string]struct {
		err   error
		lines int64
	}{"removed": {fault.New(fault.TOTPNotDefined, "none"), 500}, "unreadable": {errDisk, -1}} {
		d.TOTP = noTOTP{d.TOTP, c.err}
		n, err := d.Export(t.Context(), io.Discard, true)
		if c.lines >= 0 && (n != c.lines || err != nil) || c.lines < 0 && !errors.Is(err, errDisk) {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
}

// noTOTP has no authenticator to read.
type noTOTP struct {
	totp.Store
	err error
}

func (s noTOTP) Get(context.Context, string) (totp.Definition, error) {
	return totp.Definition{}, s.err
}
