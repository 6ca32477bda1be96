package people

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/people/corporate"
	"castellan/domain/people/document"
	"castellan/domain/people/inbox"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/record"
)

type Inbox struct{ db *engine.DB }

var _ inbox.Store = Inbox{}

// NewInbox returns the queues of the database.
func NewInbox(db *engine.DB) Inbox { return Inbox{db} }

// found is the instant of the latest finding about a user, or of the user's creation.
const found = "COALESCE((SELECT f.at FROM aml_finding AS f WHERE f.user_id = u.id ORDER BY f.id DESC LIMIT 1), " +
	"u.created_at)"

var backlogs = map[inbox.Queue]func(context.Context, *engine.DB, int) *bun.SelectQuery{
	inbox.Documents: func(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
		q := document.Query{Reason: new(user.WaitingApproval), OwnerKYC: new(user.WaitingApproval)}
		return documentList.Backlog(ctx, db, most, "d.created_at", documentFilters(q)...)
	},
	inbox.AML: func(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
		return account.Accounts.Backlog(ctx, db, most, found, riskyFilters(db.Postgres())...)
	},
	inbox.Deposits:    money.DepositBacklog,
	inbox.Withdrawals: money.WithdrawalBacklog,
	inbox.Held:        money.HeldBacklog,
	inbox.Approvals:   office.ApprovalBacklog,
	inbox.Deploys:     office.DeployBacklog,
	inbox.VPN:         office.VPNBacklog,
	inbox.Applications: func(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
		q := corporate.ApplicationQuery{Status: new("PENDING")}
		return applications.Backlog(ctx, db, most, "created_at", applicationFilters(q)...)
	},
}

func (s Inbox) Backlog(ctx context.Context, q inbox.Queue) (page.Backlog, error) {
	read, ok := backlogs[q]
	if !ok {
		return page.Backlog{}, fmt.Errorf("no queue %q", q)
	}
	return record.ReadBacklog(ctx, s.db, inbox.Most, read(ctx, s.db, inbox.Most))
}
