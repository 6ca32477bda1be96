package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
)

// listNotifications answers with two notifications, the newest first.
func (s *service) listNotifications(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := func(id, title string) map[string]any {
		var readAt any
		if slices.Contains(s.noticed, id) {
			readAt = "2026-11-21T10:00:00.000Z"
		}
		return map[string]any{"id": id, "topic": "news", "title": title, "body": "SOL can be traded from today.",
			"imageUrl": nil, "clickActionType": nil, "createdAt": "2026-11-20T10:00:00.000Z", "readAt": readAt}
	}
	answer(w, http.StatusOK, []any{one("n2", "<b>A new currency</b>"), one("n1", "Welcome")})
}

func (s *service) readNotifications(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct {
		IDs []string
		All bool
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.All == (in.IDs != nil) {
		refuse(w, http.StatusBadRequest, "INVALID_FIELD", "Send either.", nil)
		return
	}
	if s.noticed = append(s.noticed, in.IDs...); in.All {
		s.noticed = []string{"n1", "n2"}
	}
	answer(w, http.StatusOK, map[string]any{"data": map[string]any{"read": 1}})
}
