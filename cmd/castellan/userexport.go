package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/people/intake"
)

type userExportCmd struct {
	Output      string `help:"New file, readable only by its owner (default: standard output)." placeholder:"FILE"`
	WithSecrets bool   `help:"Include password hashes and authenticator secrets; asks on the terminal."`
}

func (userExportCmd) Help() string {
	return `Writes every account in the castellan format, one JSON object per line, for
"castellan user import" of another installation (docs/move-in.md). Without secrets, the
users set a new password with a password reset.

With --with-secrets, a reader of the file can guess passwords offline and generate codes
of authenticators. The command asks for confirmation and requires a terminal.`
}

// confirmation is what a person types to export secrets.
const confirmation = "export secrets"

func (c userExportCmd) Run(e *env) (err error) {
	if c.WithSecrets {
		if err := confirm(); err != nil {
			return err
		}
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	s, err := v.Intake(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	out := e.out
	if c.Output != "" {
		file, failed := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return failed
		}
		defer func() {
			if file.Close(); err != nil { // half an export may hold secrets, and would stop the next one
				err = errors.Join(err, os.Remove(c.Output))
			}
		}()
		out = file
	}
	detail := "without secrets"
	if c.WithSecrets {
		detail = "with secrets"
	}
	// The row is written first: an export that fails later may have shown secrets.
	err = v.Operate(e.ctx, "", audit.Record{Action: intake.ActionExport, Target: "users", Detail: detail})
	if err != nil {
		return err
	}
	n, err := s.Export(e.ctx, out, c.WithSecrets)
	if err != nil {
		return err
	}
	if file, ok := out.(*os.File); ok && c.Output != "" {
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", c.Output, err)
		}
	}
	_, err = fmt.Fprintf(e.err, "exported %d users %s\n", n, detail)
	return err
}

// openTerminal opens the terminal of the process. A test replaces it.
var openTerminal = func() (io.ReadWriteCloser, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// confirm asks a person on the terminal. Standard input may be a pipe, so it is not asked.
func confirm() error {
	tty, err := openTerminal()
	if err != nil {
		return errors.New("--with-secrets needs a terminal")
	}
	defer tty.Close()
	fmt.Fprintf(tty, "The export contains password hashes and authenticator secrets.\nType %q to continue: ", confirmation)
	answer, err := bufio.NewReader(io.LimitReader(tty, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the terminal: %w", err)
	}
	if strings.TrimSpace(answer) != confirmation {
		return errors.New("not confirmed; nothing is exported")
	}
	return nil
}
