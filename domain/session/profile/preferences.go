package profile

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

// ActionPreferences is the audit name of a change of preferences.
const ActionPreferences = "USER_PREFERENCES"

// Preferences are a user's preferences for messages.
type Preferences struct {
	Language  string // tr, en or ar; "" for the default of the installation
	Campaigns user.Campaigns
}

// Prefer edits the preferences of the caller and returns the resulting account. Concurrent changes run one after the
// other, each on the result of the other. The audit names the fields. RECORD_NOT_FOUND.
func (s *Service) Prefer(ctx context.Context, by audit.By, edit func(*Preferences)) (u user.User, err error) {
	err = s.Changes.Do(ctx, by, ActionPreferences, func(ctx context.Context) (done admin.Done, err error) {
		if u, err = s.Users.Hold(ctx, by.UserID); err != nil {
			return done, err
		}
		before := Preferences{u.Language, u.Campaigns}
		after := before
		edit(&after)
		u.Language, u.Campaigns = after.Language, after.Campaigns
		if fields := admin.Differ(before, after); fields != "" {
			done = admin.Done{Target: u.ID, UserID: u.ID, Detail: fields, Writes: []commit.Write{
				user.SetPreferences{UserID: u.ID, Language: after.Language, Campaigns: after.Campaigns}}}
		}
		return done, nil
	})
	return u, err
}
