package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/geo"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
	"castellan/persistence/record"
)

type Users struct{ db *engine.DB }

var _ user.Store = Users{}

func NewUsers(db *engine.DB) Users { return Users{db} }

// loginColumns are the part of an account that a login needs. A third of the columns of users is left out: on SQLite
// each costs about 0.4 µs a login.
type loginColumns struct {
	ID            string `bun:",pk"`
	Email         string `bun:",nullzero"`
	CountryCode   string
	Phone         string `bun:",nullzero"`
	Number        string `bun:",nullzero"` // "": the phone is the number
	Language      string
	Status        string
	PasswordHash  string
	SV            int64
	CV            int64
	Roles         string // of user_role, separated by commas
	Demo          bool
	TOTP          bool
	Countries     string
	Push          bool
	LastLoginDay  int64 // in days since 1970; 0: none
	MustReset     bool
	Networks      string
	FactorsOff    int64
	PasskeyHandle string `bun:",nullzero"`
}

type userRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	loginColumns
	Name          string
	Surname       string
	EmailVerified bool
	Type          string
	KYCConfirm    string
	AMLStatus     string
	Level         int
	PreviousHash  string
	SVAt          int64
	CreatedAt     int64
	IdentityHash  string
	TaxNumber     string
	BirthDate     string
	FullName      string // folded

	WithdrawProhibited bool
	AddressConfirmed   string
	CampaignSMS        bool `bun:"campaign_sms"`
	CampaignMail       bool
	CampaignPush       bool
	KYCApproved        bool  `bun:"kyc_approved,scanonly"` // the database makes it of kyc_confirm
	MoneyVersion       int64 `bun:",nullzero"`
	CredentialsAt      int64 `bun:",nullzero"`
	AlarmedAt          int64 `bun:",nullzero"`
}

type RoleRow struct {
	bun.BaseModel `bun:"table:user_role,alias:r"`

	UserID    string `bun:",pk"`
	Role      string `bun:",pk"`
	CreatedAt int64
}

func (r loginColumns) user() user.User {
	u := user.User{ID: r.ID, Email: r.Email, CountryCode: r.CountryCode, Phone: fullNumber(r.Phone, r.Number),
		Language: r.Language, Status: user.Status(r.Status), SV: r.SV, CV: r.CV, Demo: r.Demo, TOTP: r.TOTP,
		Countries: geo.Filter(r.Countries), Push: r.Push, LastLoginDay: r.LastLoginDay, MustReset: r.MustReset,
		Networks: user.Networks(r.Networks), FactorsOff: challenge.Factors(r.FactorsOff), PasskeyHandle: r.PasskeyHandle}
	if r.Roles != "" {
		u.Roles = strings.Split(r.Roles, ",")
		slices.Sort(u.Roles)
	}
	return u
}

func (r userRow) user() user.User {
	u := r.loginColumns.user()
	u.Name, u.Surname, u.EmailVerified, u.Type = r.Name, r.Surname, r.EmailVerified, user.Type(r.Type)
	u.KYCConfirm, u.AddressConfirmed, u.AMLStatus, u.Level = r.KYCConfirm, r.AddressConfirmed, r.AMLStatus, r.Level
	u.IdentityHash, u.TaxNumber, u.BirthDate = r.IdentityHash, r.TaxNumber, r.BirthDate
	u.WithdrawProhibited, u.MoneyVersion = r.WithdrawProhibited, r.MoneyVersion
	u.Campaigns = user.Campaigns{SMS: r.CampaignSMS, Mail: r.CampaignMail, Push: r.CampaignPush}
	u.CreatedAt, u.CredentialsAt, u.AlarmedAt = engine.Time(r.CreatedAt), engine.Time(r.CredentialsAt),
		engine.Time(r.AlarmedAt)
	return u
}

func rowOfUser(w user.Add) userRow {
	return userRow{loginColumns: loginColumns{ID: w.ID, Email: w.Email, CountryCode: w.CountryCode, Phone: w.Phone,
		Language: w.Language, Status: string(w.Status), PasswordHash: w.PasswordHash, SV: w.SV, CV: w.CV,
		Roles: strings.Join(w.Roles, ","), Demo: w.Demo, TOTP: w.TOTP, Countries: string(w.Countries), Push: w.Push,
		MustReset: w.MustReset, Networks: string(w.Networks), FactorsOff: int64(w.FactorsOff),
		PasskeyHandle: w.PasskeyHandle},
		Name: w.Name, Surname: w.Surname, EmailVerified: w.EmailVerified, Type: string(w.Type), KYCConfirm: w.KYCConfirm,
		AMLStatus: w.AMLStatus, Level: w.Level, CreatedAt: engine.Millis(w.CreatedAt), IdentityHash: w.IdentityHash,
		TaxNumber: w.TaxNumber, BirthDate: w.BirthDate, FullName: user.FoldName(w.User.FullName()),
		WithdrawProhibited: w.WithdrawProhibited, AddressConfirmed: cmp.Or(w.AddressConfirmed, user.WaitingApproval),
		CampaignSMS: w.Campaigns.SMS, CampaignMail: w.Campaigns.Mail, CampaignPush: w.Campaigns.Push,
		MoneyVersion: w.MoneyVersion, CredentialsAt: engine.Millis(w.CredentialsAt),
		AlarmedAt: engine.Millis(w.AlarmedAt)}
}

// personRow is the row of the changes of who an account belongs to.
type personRow struct {
	bun.BaseModel `bun:"table:users"`

	ID, Name, Surname, FullName, IdentityHash, BirthDate string
}

// loggedInRow is the row of user.LoggedIn. Mark is empty for a known network.
type loggedInRow struct {
	bun.BaseModel `bun:"table:users"`

	ID   string
	Day  int64
	Mark string
}

// networksWith are the networks with one more mark, without the oldest where they are
// at their bound.
var networksWith = fmt.Sprintf("CASE WHEN v.mark = '' OR LENGTH(users.networks) < %d THEN users.networks "+
	"ELSE SUBSTR(users.networks, %d) END || v.mark", user.MaxNetworks*user.MarkLen, user.MarkLen+1)

var UserWrites = []engine.Kind{
	engine.All(func(ctx context.Context, tx bun.Tx, ws []user.Add) error {
		users := make([]userRow, len(ws))
		var roles []RoleRow
		for i, w := range ws {
			users[i] = rowOfUser(w)
			for _, r := range w.Roles {
				roles = append(roles, RoleRow{UserID: w.ID, Role: r, CreatedAt: engine.Millis(w.CreatedAt)})
			}
		}
		if err := storeFormer(ctx, tx, users); err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(&users).Returning("NULL").Exec(ctx); err != nil || len(roles) == 0 {
			return err
		}
		_, err := tx.NewInsert().Model(&roles).Returning("NULL").Exec(ctx)
		return err
	}),
	engine.Update("UPDATE users SET password_hash = v.text {FROM v} "+
		"WHERE users.id = v.id AND users.password_hash = v.dial",
		func(w user.Rehash) factor.UserStep { return factor.UserStep{ID: w.UserID, Text: w.New, Dial: w.Old} }),
	factor.SetUser("cv = users.cv + 1", func(w user.Touch) factor.UserStep { return factor.UserStep{ID: w.UserID} }),
	factor.SetUser("aml_status = v.text"+raised, func(w user.SetAMLStatus) factor.UserStep {
		return factor.UserStep{ID: w.UserID, Text: w.Status}
	}),
	factor.SetUser("level = v.n"+raised, func(w user.SetLevel) factor.UserStep {
		return factor.UserStep{ID: w.UserID, N: int64(w.Level)}
	}),
	engine.Update("UPDATE users SET name = v.name, surname = v.surname, full_name = v.full_name {FROM v} "+
		"WHERE users.id = v.id", func(w user.SetName) personRow {
		named := user.User{Name: w.Name, Surname: w.Surname}
		return personRow{ID: w.UserID, Name: w.Name, Surname: w.Surname, FullName: user.FoldName(named.FullName())}
	}),
	// A row whose day and network are known is left alone, and with it its indexes.
	engine.Update("UPDATE users SET networks = "+networksWith+", last_login_day = CASE "+
		"WHEN users.last_login_day < v.day THEN v.day ELSE users.last_login_day END {FROM v} "+
		"WHERE users.id = v.id AND (users.last_login_day < v.day OR v.mark <> '')",
		func(w user.LoggedIn) loggedInRow {
			return loggedInRow{ID: w.UserID, Day: user.LoginDay(w.At), Mark: w.Network}
		}),
	factor.SetUser("email_verified = TRUE", func(w user.VerifyMail) factor.UserStep {
		return factor.UserStep{ID: w.UserID}
	}),
	factor.SetUser("alarmed_at = v.n"+raised, func(w user.Alarm) factor.UserStep {
		return factor.UserStep{ID: w.UserID, N: engine.Millis(w.At)}
	}),
	factor.SetUser("withdraw_prohibited = v.yes"+raised, func(w user.SetWithdrawProhibited) factor.UserStep {
		return factor.UserStep{ID: w.UserID, Yes: w.Prohibited}
	}),
	engine.All(func(ctx context.Context, tx bun.Tx, ws []user.Grant) error {
		rows := make([]RoleRow, len(ws))
		for i, w := range ws {
			rows[i] = RoleRow{UserID: w.UserID, Role: w.Role, CreatedAt: engine.Millis(w.At)}
		}
		if _, err := tx.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx); err != nil {
			return err
		}
		ids := make([]string, len(ws))
		for i, w := range ws {
			ids[i] = w.UserID
		}
		return repeatRoles(ctx, tx, ids)
	}),
	engine.Each(func(ctx context.Context, tx bun.Tx, w user.Revoke) error {
		if _, err := tx.NewDelete().Table("user_role").Where("user_id = ?", w.UserID).Where("role = ?", w.Role).
			Exec(ctx); err != nil {
			return err
		}
		return repeatRoles(ctx, tx, []string{w.UserID})
	}),
}

// repeatRoles writes the roles of accounts into their rows.
func repeatRoles(ctx context.Context, tx bun.Tx, ids []string) error {
	roles := tx.NewSelect().TableExpr("user_role AS r").ColumnExpr("string_agg(r.role, ',')").
		Where("r.user_id = users.id")
	_, err := tx.NewUpdate().Table("users").Set("roles = COALESCE((?), '')"+raised, roles).
		Where("id IN (?)", bun.List(ids)).Exec(ctx)
	return err
}

func (s Users) Get(ctx context.Context, id string) (user.User, error) {
	return Accounts.Prepared(ctx, s.db, "id = $1", id)
}

func (s Users) ByEmail(ctx context.Context, mail string) (user.User, error) {
	return Accounts.Prepared(ctx, s.db, "email = $1", mail)
}

// Accounts lists users, newest first: ids sort by creation.
var Accounts = record.Table[userRow, user.User]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Absent: "there is no such user",
	Record: func(r userRow) (user.User, error) { return r.user(), nil },
}

var secrets = record.Table[userRow, user.Secret]{
	Absent: Accounts.Absent,
	Record: func(r userRow) (user.Secret, error) {
		return user.Secret{Hash: r.PasswordHash, Previous: r.PreviousHash}, nil
	},
}

func (s Users) Demo(ctx context.Context) ([]user.User, error) {
	us, err := Accounts.List(ctx, s.db, record.Part{Where: []record.Filter{record.Where("demo")}})
	slices.Reverse(us)
	return us, err
}

func (s Users) Login(ctx context.Context, who user.Identifier, nobody string) (user.Entrance, error) {
	var r entranceRow
	var err error
	switch {
	case who.Phone == "":
		err = s.db.Ask(ctx, &r, byMail, who.Mail, nobody)
	case who.Former == "":
		err = s.db.Ask(ctx, &r, byPhone, who.Phone, nobody)
	default:
		err = s.db.Ask(ctx, &r, entranceFormerly, who.Phone, who.Former, nobody)
	}
	if err != nil {
		return user.Entrance{}, err
	}
	e := user.Entrance{User: r.user(), Hash: r.PasswordHash}
	if e.Guard, err = guardOf(cmp.Or(r.ID, nobody), r.GuardVersion, r.GuardBody); err == nil && r.ID == "" {
		err = Accounts.NotFound()
	}
	return e, err
}

// entranceRow is an account with the guard of its password. Where there is no account its fields are empty.
type entranceRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	loginColumns
	GuardVersion int64  `bun:",scanonly"`
	GuardBody    string `bun:",scanonly"`
}

var byPhone, byMail = entrance("phone"), entrance("email")

// entrance asks for an account by a column, with its guard. It has one row in any
// case.
func entrance(column string) engine.Query {
	return engine.Query{
		From: "(SELECT 1) AS nobody LEFT JOIN users AS u ON u." + column + " = $1 " +
			"LEFT JOIN password_guard AS g ON g.id = COALESCE(u.id, $2)",
		Columns: "?TableColumns, g.version AS guard_version, g.body AS guard_body",
	}
}

func (s Users) Secret(ctx context.Context, id string) (user.Secret, error) {
	return secrets.Prepared(ctx, s.db, "id = $1", id)
}

func (s Users) List(ctx context.Context, after string, limit int) ([]user.User, error) {
	p := record.Part{Limit: limit}
	if after != "" {
		p.After = []any{after}
	}
	return Accounts.List(ctx, s.db, p)
}

func (s Users) RolesOf(ctx context.Context, ids []string) (map[string][]string, error) {
	var rows []RoleRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&rows).Column("user_id", "role").
		Where("user_id IN (?)", bun.List(ids)))
	given := map[string][]string{}
	for _, r := range rows {
		given[r.UserID] = append(given[r.UserID], r.Role)
	}
	return given, err
}

func (s Users) Holders(ctx context.Context) (map[string][]string, error) {
	var rows []RoleRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&rows).Column("user_id", "role"))
	held := map[string][]string{}
	for _, r := range rows {
		held[r.Role] = append(held[r.Role], r.UserID)
	}
	return held, err
}
