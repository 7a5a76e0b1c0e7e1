BEGIN TRANSACTION;
CREATE TABLE block (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "block" VALUES(1,'5f0c');
CREATE TABLE build (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	revision TEXT NOT NULL, 
	variant TEXT NOT NULL, 
	benchmark TEXT NOT NULL, 
	finished TEXT NOT NULL, 
	succeeded BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	machine_id INTEGER, 
	perftrail_id INTEGER NOT NULL, recipe TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "build" VALUES(1,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','1111111111111111111111111111111111111111','plain','','',0,'{"failure":{"stage":"build","message":"error: no such file","log":"/logs/e2","seconds":1.25}}',NULL,1,'');
INSERT INTO "build" VALUES(2,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','1111111111111111111111111111111111111111','plain','','2025-11-21T02:00:00+00:00',1,'{"built":{"key":"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee","artefact":"cccccccccccccccccccccccccccccccc","directory":"/builds/e","seconds":12.5,"log":"/logs/e","reused":true,"layout":0}}',NULL,1,'');
INSERT INTO "build" VALUES(3,'ffffffffffffffffffffffffffffffff','1111111111111111111111111111111111111111','plain','mt','',1,'{"prepared":{"built":{"key":"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee","artefact":"cccccccccccccccccccccccccccccccc","directory":"/builds/e","seconds":12.5,"log":"/logs/e","reused":true,"layout":0},"out":"/builds/f","artefact":"99999999999999999999999999999999"}}',NULL,1,'');
CREATE TABLE build_reads (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	recipe TEXT NOT NULL, 
	revision TEXT NOT NULL, 
	finished TEXT NOT NULL, 
	reads TEXT NOT NULL, 
	machine_id INTEGER, 
	perftrail_id INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "build_reads" VALUES(1,'88888888888888888888888888888888','99999999999999999999999999999999','1111111111111111111111111111111111111111','2025-11-21T06:00:00Z','{"opened":["lib/a b.h","main.c"],"looked_up":["NEWS"],"listed":["","lib"],"incomplete":""}',1,1);
CREATE TABLE comparison (
	id INTEGER NOT NULL, 
	finished TEXT NOT NULL, 
	result TEXT NOT NULL, 
	machine_id INTEGER NOT NULL, 
	perftrail_id INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "comparison" VALUES(1,'2025-11-21T04:00:00Z','{"base":"1111111111111111111111111111111111111111","rows":[{"low":1.5}]}',1,1);
CREATE TABLE explanation (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	revision TEXT NOT NULL, 
	against TEXT NOT NULL, 
	finished TEXT NOT NULL, 
	result TEXT NOT NULL, 
	machine_id INTEGER, 
	perftrail_id INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "explanation" VALUES(1,'77777777777777777777777777777777','2222222222222222222222222222222222222222','1111111111111111111111111111111111111111','2025-11-21T06:00:00Z','{"culprit":"2222222222222222222222222222222222222222","points":[]}',1,1);
CREATE TABLE failure (
	invocation_id INTEGER NOT NULL, 
	stage TEXT NOT NULL, 
	message TEXT NOT NULL, 
	log TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	PRIMARY KEY (invocation_id), 
	FOREIGN KEY(invocation_id) REFERENCES invocation (id)
);
INSERT INTO "failure" VALUES(3,'timeout','still running after 60 s','/logs/2',60.0);
INSERT INTO "failure" VALUES(7,'timeout','still running after 60 s','/logs/2',60.0);
CREATE TABLE invocation (
	id INTEGER NOT NULL, 
	runnable_id INTEGER NOT NULL, 
	machine_id INTEGER NOT NULL, 
	phase SMALLINT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	started TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	flags TEXT, 
	log TEXT, 
	perftrail_id INTEGER NOT NULL, block_id INTEGER REFERENCES block (id), turn SMALLINT, seed BIGINT, layout INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (runnable_id, machine_id, phase, ordinal), 
	FOREIGN KEY(runnable_id) REFERENCES runnable (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "invocation" VALUES(1,1,1,0,0,'2025-11-21T02:37:00.123456+00:00',0.11,'["busy","output-cut"]','/logs/1',1,NULL,NULL,NULL,NULL);
INSERT INTO "invocation" VALUES(2,1,1,1,0,'2025-11-21T02:37:00.123456+00:00',0.11,'["busy","output-cut"]','/logs/1',1,NULL,NULL,NULL,NULL);
INSERT INTO "invocation" VALUES(3,1,1,1,1,'2025-11-21T02:38:00+00:00',60.0,NULL,NULL,1,NULL,NULL,NULL,NULL);
INSERT INTO "invocation" VALUES(4,1,1,1,2,'2025-11-21T02:37:00.123456+00:00',0.11,NULL,NULL,1,NULL,NULL,NULL,NULL);
INSERT INTO "invocation" VALUES(5,2,2,1,0,'2025-11-21T02:37:00.123456+00:00',0.11,'["busy","output-cut"]','/logs/1',1,NULL,NULL,NULL,NULL);
INSERT INTO "invocation" VALUES(6,2,1,1,0,'2025-11-21T02:37:00.123456+00:00',0.11,'["busy","output-cut"]','/logs/1',1,1,3,9223372036854775807,7);
INSERT INTO "invocation" VALUES(7,2,1,1,1,'2025-11-21T02:38:00+00:00',60.0,NULL,NULL,1,1,NULL,9223372036854775807,NULL);
INSERT INTO "invocation" VALUES(8,2,1,1,2,'2025-11-21T02:37:00.123456+00:00',0.11,'["busy","output-cut"]','/logs/1',1,NULL,NULL,1,NULL);
CREATE TABLE listing (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	revision TEXT NOT NULL, 
	variant TEXT NOT NULL, 
	finished TEXT NOT NULL, 
	result TEXT NOT NULL, 
	machine_id INTEGER, 
	perftrail_id INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "listing" VALUES(1,'55555555555555555555555555555555','44444444444444444444444444444444','1111111111111111111111111111111111111111','plain','2025-11-21T05:00:00Z','{"benchmarks":[{"name":"test_sort[1000]","file":"bench.py"}]}',1,1);
CREATE TABLE machine (
	id INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (fingerprint)
);
INSERT INTO "machine" VALUES(1,'0123456789abcdef','{"cpu":"Example 3000","logical_cpus":"8"}');
INSERT INTO "machine" VALUES(2,'fedcba9876543210','{"cpu":"Example 1000","logical_cpus":"2"}');
CREATE TABLE method (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "method" VALUES(1,'rusage');
CREATE TABLE metric (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "metric" VALUES(1,'page_faults');
INSERT INTO "metric" VALUES(2,'peak_memory');
INSERT INTO "metric" VALUES(3,'ratio');
INSERT INTO "metric" VALUES(4,'wall');
CREATE TABLE origin (
	id INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (text)
);
INSERT INTO "origin" VALUES(1,'{"recipe":"77777777777777777777777777777777","lines":["make","{build}/prog"],"tools":["x86_64","cc: cc 12.2.0"]}');
CREATE TABLE perftrail (
	id INTEGER NOT NULL, 
	version TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (version)
);
INSERT INTO "perftrail" VALUES(1,'0.1.0');
CREATE TABLE perftrail_schema (
	version INTEGER NOT NULL, 
	migration TEXT NOT NULL, 
	perftrail TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "perftrail_schema" VALUES(1,'0001_outcomes_and_searches','0.1.0');
INSERT INTO "perftrail_schema" VALUES(2,'0002_regression_notes','0.1.0');
INSERT INTO "perftrail_schema" VALUES(3,'0003_draws','0.1.0');
INSERT INTO "perftrail_schema" VALUES(4,'0004_plain_keys','0.1.0');
INSERT INTO "perftrail_schema" VALUES(5,'0005_origins','0.1.0');
INSERT INTO "perftrail_schema" VALUES(6,'0006_comparisons','0.1.0');
INSERT INTO "perftrail_schema" VALUES(7,'0007_listings','0.1.0');
INSERT INTO "perftrail_schema" VALUES(8,'0008_build_reads','0.1.0');
INSERT INTO "perftrail_schema" VALUES(9,'0009_explanations','0.1.0');
CREATE TABLE regression_note (
	id INTEGER NOT NULL, 
	regression TEXT NOT NULL, 
	status TEXT NOT NULL, 
	text TEXT NOT NULL, 
	author TEXT NOT NULL, 
	written TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE revision (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	summary TEXT NOT NULL, 
	label TEXT NOT NULL, 
	time TEXT NOT NULL, 
	parents TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "revision" VALUES(1,'2222222222222222222222222222222222222222',0,'','v1','','[]');
INSERT INTO "revision" VALUES(2,'1111111111111111111111111111111111111111',1,'Faster','','','["2222222222222222222222222222222222222222"]');
CREATE TABLE runnable (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "runnable" VALUES(1,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
INSERT INTO "runnable" VALUES(2,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb');
CREATE TABLE search (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	machine_id INTEGER NOT NULL, 
	question TEXT NOT NULL, 
	started TEXT NOT NULL, 
	answer TEXT, 
	perftrail_id INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key", machine_id), 
	FOREIGN KEY(machine_id) REFERENCES machine (id), 
	FOREIGN KEY(perftrail_id) REFERENCES perftrail (id)
);
INSERT INTO "search" VALUES(1,'77777777777777777777777777777777',1,'{"metric":"wall","threshold":0.05}','2025-11-21T03:00:00Z','{"verdict":"found","changes":[{"confidence":0.997}]}',1);
CREATE TABLE stands_for (
	id INTEGER NOT NULL, 
	runnable_id INTEGER NOT NULL, 
	revision TEXT NOT NULL, 
	variant TEXT NOT NULL, 
	benchmark TEXT NOT NULL, 
	point TEXT NOT NULL, 
	artefact TEXT NOT NULL, origin_id INTEGER REFERENCES origin (id), 
	PRIMARY KEY (id), 
	UNIQUE (runnable_id, revision, variant, benchmark, point), 
	FOREIGN KEY(runnable_id) REFERENCES runnable (id)
);
INSERT INTO "stands_for" VALUES(1,1,'1111111111111111111111111111111111111111','plain','mt','[["threads",2],["size",0.5],["mode","fast"]]','cccccccccccccccccccccccccccccccc',NULL);
INSERT INTO "stands_for" VALUES(2,2,'2222222222222222222222222222222222222222','pooled','st','[]','dddddddddddddddddddddddddddddddd',1);
INSERT INTO "stands_for" VALUES(3,1,'3333333333333333333333333333333333333333','plain','mt','[["threads",2],["size",0.5],["mode","fast"]]','cccccccccccccccccccccccccccccccc',NULL);
CREATE TABLE step (
	search_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	action TEXT NOT NULL, 
	news TEXT NOT NULL, 
	belief TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (search_id, number), 
	FOREIGN KEY(search_id) REFERENCES search (id)
);
INSERT INTO "step" VALUES(1,1,'{"measure":"5555555555555555555555555555555555555555","times":4}','{"values":[1.5,2,null,true],"nested":{"a":"b"}}','{"candidates":[0.25,0.75]}','measured r5 four times');
CREATE TABLE value (
	invocation_id INTEGER NOT NULL, 
	metric_id INTEGER NOT NULL, 
	value DOUBLE NOT NULL, 
	method_id INTEGER, 
	PRIMARY KEY (invocation_id, metric_id), 
	FOREIGN KEY(invocation_id) REFERENCES invocation (id), 
	FOREIGN KEY(metric_id) REFERENCES metric (id), 
	FOREIGN KEY(method_id) REFERENCES method (id)
)
 WITHOUT ROWID

;
INSERT INTO "value" VALUES(1,1,112.0,NULL);
INSERT INTO "value" VALUES(1,2,1048576.0,1);
INSERT INTO "value" VALUES(1,4,0.1,NULL);
INSERT INTO "value" VALUES(2,1,112.0,NULL);
INSERT INTO "value" VALUES(2,2,1048576.0,1);
INSERT INTO "value" VALUES(2,4,0.1,NULL);
INSERT INTO "value" VALUES(4,3,4.94065645841247e-324,NULL);
INSERT INTO "value" VALUES(4,4,0.1,NULL);
INSERT INTO "value" VALUES(5,1,112.0,NULL);
INSERT INTO "value" VALUES(5,2,1048576.0,1);
INSERT INTO "value" VALUES(5,4,0.1,NULL);
INSERT INTO "value" VALUES(6,1,112.0,NULL);
INSERT INTO "value" VALUES(6,2,1048576.0,1);
INSERT INTO "value" VALUES(6,4,0.1,NULL);
INSERT INTO "value" VALUES(8,1,112.0,NULL);
INSERT INTO "value" VALUES(8,2,1048576.0,1);
INSERT INTO "value" VALUES(8,4,0.1,NULL);
CREATE INDEX build_by_key ON build ("key", id);
CREATE INDEX stands_for_by_benchmark ON stands_for (benchmark, id);
COMMIT;
