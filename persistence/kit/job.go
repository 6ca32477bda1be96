package kit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Jobs struct{ db *engine.DB }

func NewJobs(db *engine.DB) job.Store { return Jobs{db} }

type jobRow struct {
	bun.BaseModel `bun:"table:job,alias:j"`

	Kind      string
	Key       string
	Params    []byte
	ActorID   string
	CreatedAt int64
	savedJob
}

// savedJob is what a save sets.
type savedJob struct {
	bun.BaseModel `bun:"table:job,alias:j"`

	ID         string `bun:",pk"`
	Version    int64
	State      string
	Cancel     bool
	Cursor     string
	Total      int64
	Done       int64
	Failed     int64
	Unknown    int64
	Skipped    int64
	Attempts   int
	NextAt     int64
	BeatAt     int64
	Result     string
	Error      string
	StartedAt  int64
	FinishedAt int64
	Owner      string
	Failures   string // JSON; "" for none
}

type jobItemRow struct {
	bun.BaseModel `bun:"table:job_item,alias:i"`

	JobID string `bun:",pk"`
	N     int64  `bun:",pk"`
	Ref   string
	State int16
	Error string
}

type jobItemState struct {
	JobID string
	N     int64
	State int16
	Error string
}

var JobFences = []engine.Kind{
	engine.FencedByVersion(false, func(w job.Save) savedJob { return jobs.Row(w.Job).savedJob }, "state", "cancel",
		"cursor", "total", "done", "failed", "unknown", "skipped", "attempts", "next_at", "beat_at", "result", "error",
		"started_at", "finished_at", "owner", "failures"),
}

var JobWrites = []engine.Kind{
	engine.Insert(func(w job.Add) jobRow { return jobs.Row(w.Job) }),
	engine.Insert(func(w job.AddItem) jobItemRow { return jobItems.Row(w.Item) }),
	engine.Update("UPDATE job_item SET state = v.state, error = v.error {FROM v} "+
		"WHERE job_item.job_id = v.job_id AND job_item.n = v.n",
		func(w job.SetItem) jobItemState {
			return jobItemState{JobID: w.JobID, N: w.N, State: int16(w.State), Error: w.Error}
		}),
}

var (
	jobs = record.Of(record.Table[jobRow, job.Job]{
		Order: record.Keyset{Columns: "id", Descending: true},
		Reads: func(r jobRow, j *job.Job) (err error) {
			if r.Failures != "" {
				err = json.Unmarshal([]byte(r.Failures), &j.Failures)
			}
			return err
		},
		Writes: func(j job.Job, r *jobRow) {
			if len(j.Failures) > 0 {
				r.Failures = engine.WriteJSON(j.Failures)
			}
		},
	}, record.Names{"Failures": ""}, "Failures", "Rest")
	jobItems = record.Of(record.Table[jobItemRow, job.Item]{Order: record.Keyset{Columns: "job_id, n"}}, nil)
)

func (s Jobs) Add(ctx context.Context, j job.Job) (stored job.Job, added bool, err error) {
	row := jobs.Row(j)
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		// A row that another transaction has added and not committed is waited for.
		r, err := tx.NewInsert().Model(&row).On("CONFLICT (kind, key) DO NOTHING").Exec(ctx)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			stored, added = j, true
			return err
		}
		stored, err = jobs.Find(ctx, s.db, record.Is("kind", j.Kind), record.Is("key", j.Key))
		return err
	})
	return stored, added, err
}

func (s Jobs) Get(ctx context.Context, id string) (job.Job, error) {
	return jobs.Find(ctx, s.db, record.Is("id", id))
}

func (s Jobs) Started(ctx context.Context, kind string, keys []string) (started []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("job").Column("key").Where("kind = ?", kind).
		Where("key IN (?)", bun.List(keys)), &started)
	return started, err
}

func (s Jobs) Due(ctx context.Context, now time.Time, limit int) (ids []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("job").Column("id").Where("next_at > 0").
		Where("next_at <= ?", engine.Millis(now)).Order("next_at").Limit(int64(limit)), &ids)
	return ids, err
}

func jobFilters(q job.Query) []record.Filter {
	return []record.Filter{record.Given("kind", q.Kind), record.Given("state", string(q.State))}
}

func (s Jobs) List(ctx context.Context, q job.Query, p page.Query[job.Place]) (page.Of[job.Job], error) {
	return record.ListPage(ctx, s.db, jobs, p, record.ByID, jobFilters(q))
}

func (s Jobs) Items(ctx context.Context, q job.ItemQuery) ([]job.Item, error) {
	return jobItems.List(ctx, s.db, record.Part{Limit: q.Limit,
		Where: []record.Filter{record.Is("job_id", q.JobID), record.Where("n > ?", q.After), record.Among("state",
			q.States)}})
}

func (s Jobs) Renew(ctx context.Context, id string) (n int64, err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		r, err := tx.NewUpdate().Table("job_item").Set("state = ?", job.ItemNew).Where("job_id = ?", id).
			Where("state = ?", job.ItemUnknown).Exec(ctx)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// The index of what is due holds what is not over
// and nothing else.
func (s Jobs) Census(ctx context.Context, now time.Time) (out []job.Census, err error) {
	late := engine.Millis(now.Add(-job.Late))
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("job").Column("kind", "state").ColumnExpr("COUNT(*) AS jobs").
		ColumnExpr("SUM(CASE WHEN next_at < ? AND beat_at < ? THEN 1 ELSE 0 END) AS stuck", late, late).
		Where("next_at > 0").Group("kind", "state"), &out)
	return out, err
}

// Ids begin with the instant of their making, so what
// is old is a range of the primary key.
func (s Jobs) Purge(ctx context.Context, before time.Time) error {
	const old = "id < ? AND next_at = 0"
	for {
		var gone int64
		err := s.db.InTx(ctx, func(ctx context.Context) error {
			tx := s.db.Conn(ctx)
			over := tx.NewSelect().Table("job").Column("id").Where(old, id.Before(before))
			items := tx.NewSelect().Table("job_item").Column("job_id", "n").
				Where("job_id IN (?)", over).Limit(engine.PurgeBatch)
			r, err := tx.NewDelete().Table("job_item").Where("(job_id, n) IN (?)", items).Exec(ctx)
			if err != nil {
				return err
			}
			gone, err = r.RowsAffected()
			return err
		})
		if err != nil {
			return engine.Translate(err)
		}
		if gone < engine.PurgeBatch {
			return s.db.Purge(ctx, "job", "id", old, id.Before(before))
		}
	}
}
