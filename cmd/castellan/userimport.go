package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/account/password/legacy"
	"castellan/domain/people/intake"
)

type userImportCmd struct {
	File   string `arg:"" help:"File to import."`
	Format string `help:"File format." enum:"castellan,auth0,keycloak,firebase,cognito,django,csv" default:"castellan"`
	DryRun bool   `help:"Validate every line and change nothing."`

	MustReset bool `help:"Take users whose hash costs too much or is not supported without their password; they reset it."`

	FirebaseSignerKeyFile string `help:"File with base64_signer_key of the Firebase project."`
	FirebaseSaltSeparator string `help:"Parameter base64_salt_separator of the Firebase project." default:"Bw=="`
	FirebaseRounds        uint32 `help:"Parameter rounds of the Firebase project." default:"8"`
	FirebaseMemCost       uint32 `help:"Parameter mem_cost of the Firebase project." default:"14"`
}

func (userImportCmd) Help() string {
	return `Creates an account for each user in the file, with its password, its authenticator and
its external id. docs/move-in.md has an example of each format:

  castellan user import --dry-run --format keycloak realm-export.json
  castellan user import --format keycloak realm-export.json

A user is refused if an account has the same phone number, mail address or external id;
the other users are added. Refused lines are printed as "line N: reason". An interrupted
import continues after the last batch when it runs again, and a complete file is not
imported twice. The service can run.

Parts of a user that are not taken, such as a second authenticator, are printed as
"line N: note: reason". Fields that the format does not take are counted. --must-reset
adds the users whose hash costs more than password.import_max_cost, or is of a kind that
cannot be computed; they log in after a reset of the password.

The exit status is 0 if all lines were accepted, 3 if some were refused, and 1 if the
file could not be read or the database did not answer.`
}

// exit is an error with an exit status of its own.
type exit struct {
	code int
	text string
}

func (e exit) Error() string { return e.text }

func (c userImportCmd) Run(e *env) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	importID, err := c.identify(file)
	if err != nil {
		return err
	}
	firebase, err := c.firebase()
	if err != nil {
		return err
	}
	source, err := intake.Open(intake.Format(c.Format), file, firebase)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	s, err := v.Intake(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	s.Pause = importPause
	s.Refused = func(r intake.Refusal) { fmt.Fprintf(e.out, "line %d: %s\n", r.Line, r.Reason) }
	s.MustReset = c.MustReset
	note := func(n intake.Note) error {
		_, err := fmt.Fprintf(e.out, "line %d: note: %s\n", n.Line, n.Text)
		return err
	}
	s.Noted = func(n intake.Note) { _ = note(n) } // the report that follows has the same fault
	s.Progress = func(st intake.State) {
		fmt.Fprintf(e.err, "\r%d users: %d added, %d refused", st.Cursor, st.Imported, st.Refused)
	}
	state, err := s.Run(e.ctx, importID, source, c.DryRun)
	fmt.Fprintln(e.err)
	if !c.DryRun {
		err = errors.Join(err, s.AllRefusals(context.WithoutCancel(e.ctx), importID, func(r intake.Refusal) error {
			_, err := fmt.Fprintf(e.out, "line %d: %s\n", r.Line, r.Reason)
			return err
		}), s.AllNotes(context.WithoutCancel(e.ctx), importID, note))
	}
	counts := source.Ignored()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(e.out, "not taken: %s of %d users\n", plain(name), counts[name])
	}
	return c.report(e, state, err)
}

// plain returns the name of a field as it can be printed.
func plain(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// importPause leaves the database to a running service between two batches.
const importPause = 5 * time.Millisecond

// identify returns the id of an import: the SHA-256 of its format and its content.
func (c userImportCmd) identify(file io.ReadSeeker) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", c.Format)
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("read %s: %w", c.File, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read %s: %w", c.File, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// firebase returns the hash parameters of the project.
func (c userImportCmd) firebase() (f legacy.Firebase, err error) {
	if c.Format != string(intake.Firebase) {
		return f, nil
	}
	if c.FirebaseSignerKeyFile == "" {
		return f, errors.New("the format firebase needs --firebase-signer-key-file")
	}
	key, err := os.ReadFile(c.FirebaseSignerKeyFile)
	return legacy.Firebase{SignerKey: strings.TrimSpace(string(key)), SaltSeparator: c.FirebaseSaltSeparator,
		Rounds: c.FirebaseRounds, MemCost: c.FirebaseMemCost}, err
}

// report prints the result and returns the error for the exit status.
func (c userImportCmd) report(e *env, state intake.State, err error) error {
	verb := "added"
	if c.DryRun {
		verb = "would add"
	}
	fmt.Fprintf(e.out, "%s %d users, refused %d lines\n", verb, state.Imported, state.Refused)
	switch {
	case errors.Is(err, context.Canceled):
		return exit{1, "interrupted; run the command again to continue"}
	case err != nil && state.Cursor > 0 && !state.Done:
		return exit{1, fmt.Sprintf("stopped after user %d: %v", state.Cursor, err)}
	case err != nil:
		return err
	case state.Refused > 0:
		return exit{3, fmt.Sprintf("%d lines were refused", state.Refused)}
	}
	return nil
}
