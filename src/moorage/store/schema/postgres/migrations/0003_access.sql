-- Only the SHA-256 of a token is kept. `roles` is a JSON array.
CREATE TABLE access_token (
    id TEXT COLLATE "C" PRIMARY KEY,
    sha256 TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
