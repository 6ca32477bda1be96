package integration

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/money/accounting"
	"castellan/http/rest"
)

// Accounting serves the accounting journals (D-INT-06).
type Accounting struct{ Service *accounting.Service }

func (g Accounting) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/integration/accounting/{job}", "Download an accounting journal", rest.TenantOrService, g.read,
			fault.RecordNotFound, fault.InvalidState).Binary("application/json", "text/csv").
			Try("job=01JD3X4Q7V0S8D4T2M6B9N1ZKA", fault.RecordNotFound).
			Doc("getAccountingJournal", "job is the id from beginAccountingIntegration; jobs are kept for 30 days. 409 "+
				"INVALID_STATE: the job has not finished."),
	).For(rest.Admin).Extended()
}

type journalRequest struct {
	Job    string `json:"job" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Format string `json:"format" enum:"json,csv" default:"json"`
}

func (g Accounting) read(ctx context.Context, _ rest.Caller, in journalRequest) (out rest.Reply[rest.None], err error) {
	out.Raw, out.ContentType, err = g.Service.Journal(ctx, in.Job, in.Format)
	return out, err
}
