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
	Verify  auditVerifyCmd  `cmd:"" help:"Walk the chain of audit rows and name the first broken one."`
	Archive auditArchiveCmd `cmd:"" help:"Let old rows leave the database as signed files."`
}

type auditVerifyCmd struct {
	AtLeast string   `help:"A checkpoint kept outside of the database, which must be there." placeholder:"COUNTER:MAC"`
	Archive []string `help:"Archive files, which are proven too, with their join to the database." type:"existingfile"`
}

func (auditVerifyCmd) Help() string {
	return `Rows that were changed or taken out are found by themselves. Who cuts off the end
of everything, checkpoints included, is found by a checkpoint that was kept
elsewhere: every minute the service logs "audit checkpoint" with counter and mac,
and posts them to audit.anchor_url.

  castellan audit verify --at-least 5123:9f86d081884c7d65…

Where rows have left (castellan audit archive) the history of the database goes on
from the last archive. Give the files, and all of it is proven:

  castellan audit verify --archive audit-archive/000001-….jsonl.gz --archive …`
}

func (c auditVerifyCmd) Run(e *env) (err error) {
	var known audit.Anchor
	if c.AtLeast != "" {
		if known, err = audit.ParseAnchor(c.AtLeast); err != nil {
			return fmt.Errorf("--at-least: %w", err)
		}
	}
	v, err := app.Open(e.ctx, e.cfg)
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
	fmt.Fprintf(e.out, "%d audit rows, every chain unbroken\n", found.Rows)
	if a := found.Archive; a.Counter > 0 {
		fmt.Fprintf(e.out, "they follow from archive %d, %s, made %s, sha256 %x\n", a.Counter, a.Name,
			a.At.UTC().Format(time.RFC3339), a.Digest)
	}
	if len(c.Archive) > 0 {
		fmt.Fprintf(e.out, "%d rows in %d files, from archive %d on, unbroken, and those that the database names\n",
			files.Rows, len(c.Archive), files.First)
	}
	switch newest := found.Newest.Counter; {
	case newest == 0:
		fmt.Fprintln(e.out, "there is no checkpoint yet: nothing vouches for the end of the trail")
	case found.Anchored == newest:
		fmt.Fprintf(e.out, "anchored up to the newest checkpoint, %d\n", newest)
	default:
		fmt.Fprintf(e.out, "the newest checkpoint is %d; from checkpoint %d on nothing is anchored: compare with one that "+
			"was kept elsewhere (--at-least)\n", newest, found.Anchored+1)
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
	Keep  time.Duration `help:"What is older leaves; 720h or more. Without it: audit.keep." placeholder:"DURATION"`
	To    string        `help:"Folder instead of the place of the files (files.folder, files.s3_url)."`
	Write bool          `help:"Do it. Without it the command tells what would leave."`
}

func (auditArchiveCmd) Help() string {
	return `Rows older than --keep leave as files of up to 20000 rows, audit-archive/<number>-<digest>.jsonl.gz: rows
and checkpoints as lines of JSON, signed with the key of the audit, each file
holding the digest of the one before. A file is written and durable before its rows
are removed; cut short, the command may be repeated, and nothing is lost or doubled.
Keep the files where the database's users cannot write. The service does the same
every night where audit.keep is set. On PostgreSQL its role may not remove audit
rows (docs/ledger.md): then run this command as the owner of the tables.`
}

func (c auditArchiveCmd) Run(e *env) error {
	keep := cmp.Or(c.Keep, e.cfg.Audit.Keep)
	if keep < 30*24*time.Hour {
		return errors.New("say how long rows are kept, --keep 720h or more, or set audit.keep")
	}
	v, err := app.Open(e.ctx, e.cfg)
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
		return cmp.Or(err, errors.New("this role may not remove audit rows: use the owner of the tables"))
	}
	before, rows := time.Now().Add(-keep), int64(0)
	if !c.Write {
		n, err := kit.NewAudit(v.DB).Older(e.ctx, before)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "%d rows are older than %s; nothing was written: repeat with --write\n", n, keep)
		return err
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
	_, err = fmt.Fprintf(e.out, "%d rows older than %s have left\n", rows, keep)
	return err
}
