package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"castellan/cmd/app"
	"castellan/cmd/app/adapters"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/outbound/folder"
	"castellan/persistence/kit"
)

type auditCmd struct {
	Verify  auditVerifyCmd  `cmd:"" help:"Verify the audit rows and report the first invalid one."`
	Archive auditArchiveCmd `cmd:"" help:"Move old rows from the database to signed files."`
}

type auditVerifyCmd struct {
	AtLeast string   `help:"Checkpoint stored outside the database; the trail must contain it." placeholder:"COUNTER:MAC"`
	Archive []string `help:"Archive files to verify, including their link to the database."`
}

func (auditVerifyCmd) Help() string {
	return `Detects changed and removed rows. To detect a truncated trail, compare it with a
checkpoint that is stored elsewhere: every minute the service logs "audit checkpoint"
with counter and mac, and posts them to audit.anchor_url.

  castellan audit verify --at-least 5123:9f86d081884c7d65…

After an archive run (castellan audit archive) the trail in the database starts at the
last archive. Pass the archive files to verify the whole trail:

  castellan audit verify --archive audit-archive/000001-….jsonl.gz --archive …`
}

func (c auditVerifyCmd) Run(e *env) (err error) {
	var known audit.Anchor
	if c.AtLeast != "" {
		if known, err = audit.ParseAnchor(c.AtLeast); err != nil {
			return fmt.Errorf("--at-least: %w", err)
		}
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	files, err := readArchives(v.Ring.Audit(), c.Archive)
	if err != nil {
		return err
	}
	found, err := kit.NewAudit(v.DB).VerifySince(e.ctx, v.Ring.Audit(), known, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%d audit rows, all chains are valid\n", found.Rows)
	if a := found.Archive; a.Counter > 0 {
		fmt.Fprintf(e.out, "previous archive %d, %s, created %s, sha256 %x\n", a.Counter, a.Name,
			a.At.UTC().Format(time.RFC3339), a.Digest)
	}
	if len(c.Archive) > 0 {
		fmt.Fprintf(e.out, "%d rows in %d files, starting with archive %d, are valid and match the database\n",
			files.Rows, len(c.Archive), files.First)
	}
	switch newest := found.Newest.Counter; {
	case newest == 0:
		fmt.Fprintln(e.out, "there is no checkpoint yet: a truncated trail cannot be detected")
	case found.Anchored == newest:
		fmt.Fprintf(e.out, "anchored up to the newest checkpoint, %d\n", newest)
	default:
		fmt.Fprintf(e.out, "the newest checkpoint is %d; checkpoints from %d on are not anchored: compare with one "+
			"that is stored elsewhere (--at-least)\n", newest, found.Anchored+1)
	}
	return nil
}

// readArchives verifies files in the order of their names, which begin with their number.
func readArchives(key []byte, names []string) (*kit.Archives, error) {
	names = slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Compare(filepath.Base(a), filepath.Base(b))
	})
	files := &kit.Archives{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := files.Add(key, name, content); err != nil {
			return nil, err
		}
	}
	return files, nil
}

type auditArchiveCmd struct {
	Keep  time.Duration `help:"Minimum age of archived rows, 720h or more (default audit.keep)." placeholder:"DURATION"`
	To    string        `help:"Folder for the archives (default: files.folder or files.s3_url)."`
	Write bool          `help:"Archive the rows and remove them from the database; without it, their number is printed."`
}

func (auditArchiveCmd) Help() string {
	return `Moves rows older than --keep to files audit-archive/<number>-<digest>.jsonl.gz, with up
to 20000 rows each. A file has rows and checkpoints as lines of JSON, the digest of the
previous file, and a signature by the audit key. Rows are removed only after their file
is durable. An interrupted run can be repeated: no row is lost or duplicated.

Store the files where database users cannot write. If audit.keep is set, the service
archives every night. On PostgreSQL the role of the service cannot remove audit rows
(docs/ledger.md): run this command as the owner of the tables.`
}

func (c auditArchiveCmd) Run(e *env) error {
	keep := cmp.Or(c.Keep, e.cfg.Audit.Keep)
	if keep < 30*24*time.Hour {
		return errors.New("set --keep to 720h or more, or set audit.keep")
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	var files blob.Store
	switch {
	case !c.Write:
	case c.To != "":
		files, err = folder.Open(c.To)
	default:
		files, err = adapters.Files(e.cfg.Files)
	}
	if err != nil {
		return err
	}
	if may, err := kit.NewAudit(v.DB).MayRemove(e.ctx); err != nil || c.Write && !may {
		return cmp.Or(err, errors.New("this database role cannot remove audit rows: use the owner of the tables"))
	}
	before, rows := time.Now().Add(-keep), int64(0)
	if !c.Write {
		n, err := kit.NewAudit(v.DB).Older(e.ctx, before)
		return e.printf(err, "%d rows are older than %s; nothing was written: run again with --write\n", n, keep)
	}
	for {
		made, err := v.ArchiveAudit(e.ctx, files, before)
		if err != nil {
			return err
		}
		if made.Counter == 0 {
			break
		}
		rows += made.Rows
		fmt.Fprintf(e.err, "\r%d rows", rows)
		fmt.Fprintf(e.out, "%s/%s  %d rows  sha256 %x\n", app.AuditArea, made.Name, made.Rows, made.Digest)
	}
	return e.printf(nil, "%d rows older than %s are archived\n", rows, keep)
}
