package app

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/cmd/app/doctor"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/cdn"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/setup"
	"castellan/domain/people/document"
	httpcdn "castellan/http/kit/cdn"
	httpsetup "castellan/http/kit/setup"
	httpdocument "castellan/http/people/document"
	"castellan/persistence/people"
)

// sweepFiles is how often files without a row are looked for.
const sweepFiles = time.Hour

// filing builds the file storage of the slices. A slice whose rows name files declares that in its part (part.files).
func (s *service) filing() error {
	store, err := adapters.Files(s.cfg.Files)
	if err != nil {
		return err
	}
	s.files = loggedFiles{store, s.log}
	s.pictures = picture.NewDecoder()
	s.cdnURL = cmp.Or(s.cfg.Files.CDNURL, s.publicURL+"/cdn")
	s.join(part{
		kinds: []job.Kind{{Name: "sweep-files",
			Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
				n, err := blob.Sweep(ctx, s.files, s.owners, time.Now())
				j.Total, j.Done = int64(n), int64(n)
				return j.Finish(""), nil, err
			}}},
		schedules: []job.Schedule{{Kind: "sweep-files", Every: sweepFiles}},
	})
	s.archives()
	return nil
}

// documents builds the uploads of users and administrators.
func (s *service) documents() error {
	store := people.NewDocuments(s.DB)
	s.papers = &document.Service{Store: store, Users: s.users, Files: s.files, Pictures: s.pictures, Ring: s.Ring,
		Changes: s.changes("", nil), Values: s.parameters.Set, Quota: int64(s.cfg.Files.UserQuota) << 20}
	s.join(part{
		groups: groups(
			httpdocument.Group{Service: s.papers, IdentityNo: func(ctx context.Context, userID string) (string, error) {
				return s.identities.NumberOf(ctx, userID)
			}},
			httpcdn.Group{Service: &cdn.Service{Files: s.files, Pictures: s.pictures, Changes: s.changes("", nil),
				Values: s.parameters.Set, URL: s.cdnURL}}),
		files: []blob.Owner{{Area: document.Area, ReferencedKeys: store.ReferencedPaths}},
	})
	return nil
}

// setup builds the administrators' view of the findings of the doctor.
func (s *service) setup() error {
	d := doctor.New(s.cfg, s.DB)
	checks := setup.NewChecks(func(ctx context.Context) setup.Report { return d.Report(ctx, true, nil) })
	s.join(part{groups: groups(httpsetup.Group{
		Report: func(ctx context.Context) setup.Report { return d.Report(ctx, false, nil) }, Check: checks.Run})})
	return nil
}

// loggedFiles logs why files cannot be stored or read; the client does not receive the reason.
type loggedFiles struct {
	blob.Store
	log *slog.Logger
}

func (l loggedFiles) told(err error) error {
	if fault.CodeOf(err) == fault.Unavailable {
		l.log.Warn("a file operation failed", "err", err)
	}
	return err
}

func (l loggedFiles) Put(ctx context.Context, key string, content []byte) error {
	return l.told(l.Store.Put(ctx, key, content))
}

func (l loggedFiles) Get(ctx context.Context, key string) (blob.File, error) {
	f, err := l.Store.Get(ctx, key)
	return f, l.told(err)
}

func (l loggedFiles) Stat(ctx context.Context, key string) (blob.Info, error) {
	i, err := l.Store.Stat(ctx, key)
	return i, l.told(err)
}

func (l loggedFiles) Delete(ctx context.Context, key string) error {
	return l.told(l.Store.Delete(ctx, key))
}

func (l loggedFiles) List(ctx context.Context, area string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for i, err := range l.Store.List(ctx, area) {
			if !yield(i, l.told(err)) {
				return
			}
		}
	}
}
