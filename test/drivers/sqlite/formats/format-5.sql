PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE store (incarnation text not null) strict;
INSERT INTO store VALUES('0000000000000001');
CREATE TABLE partitions (
    id integer primary key,
    epoch integer not null,
    nonce text,
    owner text not null,
    seq integer not null,
    last_batch text,
    last_time_ms integer not null,
    strikes integer not null,
    suspect text,
    is_clean integer not null
  ) strict;
INSERT INTO partitions VALUES(0,1,'0000000000000002','owner',1,'0000000000000002-1',4000,0,'m',0);
CREATE TABLE mail (id integer primary key, text text not null) strict;
INSERT INTO mail VALUES(1740800000000000,'"mail"');
CREATE TABLE snapshots (
    entity text primary key,
    version integer not null,
    format integer not null,
    text text not null
  ) strict;
INSERT INTO snapshots VALUES('execution/one',2,2,'{"state":2}');
CREATE TABLE dead_letters (
    id text primary key,
    class text not null,
    queue text not null,
    entity text not null,
    at_ms integer not null,
    text text not null
  ) strict;
INSERT INTO dead_letters VALUES('letter','exhausted','queue','execution/one',10,'{"letter":"letter"}');
CREATE TABLE records (
    scope text not null,
    hash text not null,
    text text not null,
    primary key (scope, hash)
  ) strict;
INSERT INTO records VALUES('execution/one','blob','"blob"');
INSERT INTO records VALUES('definition','a','"A"');
CREATE TABLE published (
    name text not null,
    hash text not null,
    version integer not null, is_gone integer not null default 0,
    primary key (name, hash)
  ) strict, without rowid;
INSERT INTO published VALUES('gone','a',1,1);
INSERT INTO published VALUES('name','a',1,0);
INSERT INTO published VALUES('name','b',2,0);
CREATE TABLE registrations (
    process text primary key,
    role text not null,
    text text not null,
    until_ms integer not null
  ) strict;
INSERT INTO registrations VALUES('p','worker','{}',2700000000000);
CREATE TABLE listings (
    list text not null,
    id text not null,
    entity text not null,
    at_ms integer not null,
    text text not null,
    primary key (list, id)
  ) strict;
INSERT INTO listings VALUES('reviews','r','execution/two',7,'"review"');
CREATE TABLE purges (entity text primary key, last integer) strict, without rowid;
INSERT INTO purges VALUES('execution/purged',3);
CREATE TABLE entities (
    entity text primary key,
    last integer,
    next_version integer not null default 1,
    class text,
    status text,
    workflow text,
    tenant text,
    created_at_ms integer,
    ended_at_ms integer,
    header_version integer,
    wake_at_ms integer
  ) strict, without rowid;
INSERT INTO entities VALUES('execution/one',4,4,'open','RUNNING','workflow','default',1000,NULL,1,5000);
INSERT INTO entities VALUES('execution/two',2,2,'endedWell','RUNNING','workflow','default',2000,3000,1,NULL);
CREATE TABLE IF NOT EXISTS "journal" (
    id integer primary key,
    prev integer,
    entity text not null,
    version integer not null,
    count integer not null,
    format integer not null,
    text text not null
  ) strict;
INSERT INTO journal VALUES(1,NULL,'execution/one',1,2,1,'["execution/one 1"]');
INSERT INTO journal VALUES(2,NULL,'execution/two',1,1,1,'["execution/two 1"]');
INSERT INTO journal VALUES(3,NULL,'execution/purged',1,1,1,'[]');
INSERT INTO journal VALUES(4,1,'execution/one',3,1,1,'["execution/one 3"]');
CREATE INDEX dead_letters_by_time on dead_letters (at_ms, id);
CREATE INDEX listings_by_time on listings (list, at_ms, id);
CREATE INDEX listings_by_entity on listings (entity);
CREATE UNIQUE INDEX published_by_version on published (name, version);
CREATE INDEX entities_by_creation on entities (created_at_ms, entity) where created_at_ms is not null;
CREATE INDEX entities_by_wake on entities (wake_at_ms, entity) where wake_at_ms is not null;
COMMIT;
PRAGMA user_version = 5;
PRAGMA application_id = 1835625580;
